// Package quota keeps what a namespace holds within its ResourceQuotas, and their
// status exact.
//
// apiserver/rest calls Charge inside the decision of every write of a namespaced object; what the object uses
// more or less is written into the quota's status in the same transaction. So usage never exceeds the quota,
// even with concurrent writes on several replicas, and a write that fails does not change it. Nothing has to be
// counted again later: deletions, pods that end and claims that grow are charged the same way. It differs from
// upstream in one thing: a pod counts until it is gone or has ended, even past its grace period.
//
// The usage of a quota that is new, or whose limits changed, is counted by the first write that charges it,
// from the transaction's own view, or by Keep, which package server runs on the leader unless it runs no control
// loops: upstream that counting is one, and tests of what acts on the API play it. The creation of a quota
// writes its namespace anew, so that a creation that was decided before there was a quota is decided again. A
// deletion decided in those milliseconds may be missed; Keep counts everything once in a while. Custom
// resources count from the creation of the quota on: those before it are not seen.
//
// An administrator's file may limit resources that nobody may use without a quota for them (Limited), as upstream.
//
// Usage is tested with tables and with a model, charging through apiserver with many
// writers.
package quota
