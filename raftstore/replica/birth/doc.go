// Package birth makes the name of a cluster's new life after a restore or a recovery, and its first revision,
// term and log index.
//
// It imports nothing of ours. Promises: the name is unique. The numbers are higher than those of every former
// life if the clock is right, and in any case higher than those of the life that is being restored. A table
// tests it.
package birth
