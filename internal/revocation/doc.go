// Package revocation says who is shut out of the cluster: nodes, servers, users and tokens that an administrator has revoked.
//
// It owns the form in which that is stored (the ConfigMap ConfigMapName in kube-system, one key for each Entry), the List that is read
// from it, and the Judge that every door asks: whose certificate or token is shown, and what is open already. The list is in the replicated
// store, so that servers that were away, restarts and backups keep it; one object holds all of it, so that a limit can be kept and a reader
// never sees half of a change. Servers follow it (server/access), agents watch it (agent/node/revoked). Who may write it is judged by
// apiserver/admission/revocations.
//
// Promises: Judge.Revoked is some lookups in maps and waits for nobody. What was opened (Judge.Opened) by somebody who is revoked is ended
// when the list changes, also if both happen at the same time. A transport (GuardTransport) reaches nobody who is revoked. The list has
// EntriesMax entries at most.
//
// Tested with tables; the doors by their packages, the whole by the script revoke of cmd/setpoint.
package revocation
