// Package disruption judges by PodDisruptionBudgets whether a pod may be evicted.
//
// apiserver/rest calls it while it serves pods/eviction. It reads and changes only
// the objects it is given: who stores them, and in what order, is the caller's
// matter. Its refusals are API errors with the cause by which clients such as
// kubectl drain know to try again later. Concurrent calls are safe on different
// objects. It is tested through the API, by the eviction tests of apiserver.
//
// Source: the policy/v1 API and
// https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/.
package disruption
