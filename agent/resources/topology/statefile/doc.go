// Package statefile is the form of the files cpu_manager_state and memory_manager_state, which is a kubelet's (1.37).
//
// It owns: the checksum and what it covers. It may call nothing of ours.
//
// Promises: no I/O. What was written is read again, a file that was damaged or cut short is never half read, and a kubelet reads what is
// written here and the other way round.
//
// Tested by round trips and damaged files, and in test/differential by upstream's reader.
package statefile
