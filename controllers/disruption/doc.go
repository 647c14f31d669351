// Package disruption counts what each PodDisruptionBudget allows, so that evictions and the scheduler can go by it.
//
// Reads: PodDisruptionBudgets, Pods, Deployments, ReplicaSets, StatefulSets, ReplicationControllers, and the scale
// subresource of other controllers of pods. Writes: PodDisruptionBudget status, the DisruptionTarget condition of pods, Events.
// Owns these fields: PodDisruptionBudget .status. The eviction of a pod also writes it (disruptedPods, disruptionsAllowed,
// its condition), in the transaction of the eviction: a count made of an older budget is refused, and made again.
//
// It promises: the numbers are upstream's, whatever mix of controllers the pods have; a pod whose eviction was granted does
// not count as healthy, also while caches still show it as ever; if it cannot be counted, nothing is allowed, and the condition
// says why; an eviction that came to nothing is forgotten after two minutes, in the budget and in the pod's
// condition; nothing is written, and no event, when nothing has changed.
//
// Other than upstream: a change of replicas counts at once, not with the next pod; so does a pod that leaves the budget because
// its labels change; each of several budgets of a pod is counted, not one of them; a failed write of the status is
// tried again and not shown as SyncFailed; what could not be counted is tried again each minute; events come with a change
// of the status and not with each look.
//
// Tests: the plan as tables and in generated worlds against a model; the whole controller in synctest bubbles over
// client-go's fake clientset, with faults at each write and caches that lag.
package disruption
