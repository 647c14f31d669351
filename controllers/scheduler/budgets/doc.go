// Package budgets says which evictions PodDisruptionBudgets allow right now.
//
// Preemption and the Judge of the scheduler ask it which of the pods that they would evict a budget protects. Preemption prefers
// others and takes the protected ones last, as upstream's does: budgets bind evictions by the API, not the scheduler.
//
// It is pure but for reading a lister. Tested by tables here, and beside upstream's preemption by the worlds of test/differential.
package budgets
