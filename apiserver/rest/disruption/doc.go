// Package disruption decides by PodDisruptionBudgets whether a pod may be evicted.
//
// apiserver/rest calls it inside the decision of pods/eviction. It reads the view that it is
// handed, and adds to the view's transaction what the eviction costs its budget.
//
// It promises: the budget pays in the transaction that deletes or marks the pod, so that no two evictions, on
// whatever replicas, spend the same disruption, and none is spent for an eviction that fails. An eviction that costs
// nothing, since the pod is not ready, takes effect only if pod and budget are still as they were judged.
// Refusals are upstream's errors, with the cause by which clients such as kubectl drain know to try again later.
//
// Tested with generated pods and budgets against upstream's rules, written down a second time in the test, and through
// the API by apiserver's tests of evictions, over several replicas.
//
// Source: the policy/v1 API and
// https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/.
package disruption
