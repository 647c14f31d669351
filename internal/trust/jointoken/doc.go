// Package jointoken makes, lists and ends the tokens with which machines join.
//
// It owns what such a token is in the store: a bootstrap token, that is a Secret of type
// bootstrap.kubernetes.io/token in kube-system, which the controller bootstraptoken deletes
// when it has expired. `setpoint token` calls it with an administrator's client, the leader
// with its own at the start of its term (EnsureFirst). It calls the API and
// internal/trust; whether a token is good is
// judged by auth.BootstrapTokens, and Judge says whether a refusal would come too early.
//
// A token for servers (CreateServer) is such a Secret too, with two differences, since whoever joins with it gets all keys of the
// cluster: it holds no secret, only a seal over the token that servers alone can make. So neither who may read Secrets can join as a
// server, nor who may write them.
//
// Promises: a secret is returned once, by Create; every token it makes ends, and takes so many
// names of nodes (Take), whichever way they join. Tested
// by a table, against a whole server in package server, and by a script.
package jointoken
