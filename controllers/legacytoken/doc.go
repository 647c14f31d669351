// Package legacytoken fills Secrets of type kubernetes.io/service-account-token: the
// tokens without an end that somebody asks for by making such a Secret.
//
// It is called by package controllers, once for each leadership term, and calls
// client-go and reconcile. Config.Tokens, which the wiring fills, signs.
//
// Reads: Secrets of that type, through an informer of its own, and ServiceAccounts. Writes: Secrets (update, delete).
// Owns: the keys token, ca.crt and namespace of such Secrets, and the annotation with
// the account's uid.
//
// It promises: the Secret of an account that is there has a token for it, the current
// bundle and its namespace; the Secret of an account that is gone, or was made anew
// since, is deleted. Before it deletes, it asks the API, not the cache, for the account.
//
// Tests run in synctest bubbles over client-go's fake clientset.
package legacytoken
