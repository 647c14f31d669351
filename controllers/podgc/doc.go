// Package podgc deletes pods that nothing else will delete: finished ones beyond a limit, those whose node does
// not exist any more or was declared out of service, and those that were deleted before they were placed.
//
// Reads: Pods, Nodes. Writes: Pods (status phase Failed and DisruptionTarget,
// delete without grace).
// Owns: .status.phase of a pod whose node is gone.
//
// It promises: a pod counts as orphaned only when its node has been missing for orphanPatience and a read
// through the API finds it missing too; the pods of servers (internal/parts), which are on no node, are left
// alone; nothing is written when nothing has changed.
//
// Tests: the choice as a table; the whole controller in synctest bubbles over
// client-go's fake clientset.
package podgc
