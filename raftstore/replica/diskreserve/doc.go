// Package diskreserve keeps a file that occupies some disk space, and deletes it when the disk is full, so that
// deletions and compaction, which free more space, can still be written.
//
// raftstore/replica calls it as the free room falls and rises. Its tests are pure, on
// real files; the store's test on a disk of a few MiB shows what it is for.
package diskreserve
