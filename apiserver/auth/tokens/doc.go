// Package tokens makes and checks the tokens of service accounts.
//
// It owns their form (signed JWTs with upstream's claims), the documents by which
// others check them (issuer discovery and key set), and the rule when one is no
// longer good: its account, and the pod, secret or node that it is bound to, must
// still be the very objects that it was made for.
//
// The chain of apiserver asks the Authenticator, apiserver/rest the Issuer, for the token subresource of
// service accounts; package server makes both from the keys in the trust folder, which all servers share. It
// reads apiserver/storage.
//
// Promises: a token is good on every server at once. Keys are read at each use, so that they can be rotated while requests run: the
// tokens of each key are good until that key is dropped, and its published set names them all. The signature of a token is
// checked once for each server and remembered as long as its key is there; what it is bound to is looked up
// with every request, in this replica's own state, and before a token is refused
// in the newest state of the cluster. It costs no write, but one a day for a token that is kept in a Secret: the label with the
// day of its last use, by which controllers/legacytoken ends those that nobody uses. No request waits for it. Tokens appear in no log.
//
// It is tested with tables of claims over an in-memory store.
package tokens
