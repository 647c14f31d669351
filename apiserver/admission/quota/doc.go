// Package quota keeps what a namespace holds within its ResourceQuotas, and their
// status exact.
//
// apiserver/rest calls Charge inside the decision of every write of a namespaced
// object; what the object uses more or less is written into the quota's status in the
// same transaction. So usage is never more than allowed, whoever writes at once and on
// whichever replica, and a write that fails leaves no trace in it. Nothing has to be
// counted again later: deletions, pods that end and claims that grow are charged the
// same way. It differs from upstream in one thing: a pod counts until it is gone or
// has ended, even past its grace period.
//
// A quota that is new, or whose limits changed, is counted by whoever charges it
// first, from the transaction's own view, or by Keep, which the root package runs on
// the leader. The creation of a quota writes its namespace anew, so that a creation
// that was decided before there was a quota is decided again. A deletion decided in
// those milliseconds may be missed; Keep counts everything once in a while. Custom
// resources count from the creation of the quota on: those before it are not seen.
//
// Usage is tested with tables and with a model, charging through apiserver with many
// writers.
package quota
