// Package reserve holds some room on a disk back, to give it up when there is none left:
// then deletions and compaction, which free more, can still be written down.
//
// raftstore/replica calls it as the free room falls and rises. Its tests are pure, on
// real files; the store's test on a disk of a few MiB shows what it is for.
package reserve
