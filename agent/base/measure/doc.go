// Package measure reads what this machine has, and how much of it is left.
//
// It owns: how file systems, memory and process ids are counted, which is as a kubelet does, so that the Node's status, its
// metrics and evictions tell the same.
//
// Tested with proc file systems made up.
package measure
