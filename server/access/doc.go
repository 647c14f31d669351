// Package access builds the authentication and authorization of one server.
//
// It owns the chain of authenticators and authorizers of one server: certificates, tokens of
// service accounts and of bootstrap, configured issuers; roles, nodes and what their pods use.
// Package server makes one over the opened storage, hands its parts to the API, and runs it
// while the server runs. It calls apiserver/auth and below, and apiserver/storage.
//
// It ends what is open of whom an administrator has revoked, and of nodes whose Node was deleted.
//
// Promises: a decision reads this server only; a refusal is judged once more after catching up
// with what was written in the cluster before the request.
//
// Its parts are tested in their packages, the whole by the scripts access and certificates.
package access
