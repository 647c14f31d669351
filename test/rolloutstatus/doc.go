// Package rolloutstatus judges what the watchers of a workload are told while it changes.
//
// It owns the judge: it reads the versions of one workload and of its pods in the order in which they were stored, asks
// several clients' rules after each version whether the rollout is finished, and finds fault where one says so before
// the pods of the newest template run. The rules are kubectl's, taken as a library, and two written from the
// documentation of others: one that looks at conditions and updated replicas, and one that only counts.
//
// Jobs have a judge of their own: whoever waits for one is told of its end once, when its pods have ended and are counted.
//
// A court of test/judges hears the same events, and judges by the rules of more tools, ReplicaSets too.
//
// `make test` runs it. A whole control plane with simulated nodes rolls out, scales, restarts and deletes Deployments,
// StatefulSets and DaemonSets in a synctest bubble; the judge reads all that was stored meanwhile. Tests of settled
// states cannot find such faults.
package rolloutstatus
