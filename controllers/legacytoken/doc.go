// Package legacytoken fills Secrets of type kubernetes.io/service-account-token: the
// tokens without an end that somebody asks for by making such a Secret.
//
// Config.Tokens, which server/term fills, signs. New fills them, NewCleaner ends tokens that nobody uses.
//
// Reads: Secrets of that type, through an informer of its own, ServiceAccounts and, to clean, Pods and the ConfigMap
// kube-system/kube-apiserver-legacy-service-account-token-tracking (by a get a day; package clusterobjects writes it).
// Writes: Secrets (update, patch, delete). Owns: the keys token, ca.crt and namespace of such Secrets, the annotation with
// the account's uid, and the label kubernetes.io/legacy-token-invalid-since. The API server owns the label last-used
// (apiserver/auth/tokens).
//
// It promises: the Secret of an account that is there has a token for it, the current bundle and its namespace; the Secret
// of an account that is gone, or was made anew since, is deleted. Before it deletes, it asks the API, not the cache, for
// the account. A token that the account lists among its secrets, that no pod mounts and that nobody used for a year is
// marked, after which the API refuses it; a year later its Secret goes. Nothing goes before use was recorded for a year,
// and what cannot be read stays.
//
// Tests run in synctest bubbles over client-go's fake clientset.
package legacytoken
