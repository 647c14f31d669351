package raftstore

import "time"

const (
	// batchWaitMin is how many commands must have been outstanding together for a batch
	// to wait for company. Fewer gain too little by it.
	batchWaitMin = 8
	// batchWaitPatience is how many times as long as the last batch was under way the next
	// may wait.
	batchWaitPatience = 2
)

// batchWait says how many commands a batch may expect, and how long to wait for them.
//
// The writers of the last batch come back one after the other, and the first would
// leave at once, alone: each batch costs every replica a commit to disk and a dozen
// system calls, whatever it holds. So a batch waits until as many are together as
// lately were, but not longer than twice the time that the batch before it was under
// way: a third of the time the disk works, and two thirds the writers do. Reads that are
// proved together wait by the same rule, from fewer on. The zero value expects nobody.
type batchWait struct {
	// together is how many were outstanding at once lately.
	together int
	// until is when nobody is waited for any more.
	until time.Time
}

// landing is the end of a batch.
type landing struct {
	at   time.Time
	took time.Duration
	// limit bounds the wait of the next batch, however long this one took.
	limit time.Duration
	// together is how many commands were outstanding then, those of the batch among
	// them: writers who come back meet the others.
	together int
}

// landed notes the end of a batch.
func (c *batchWait) landed(l landing) {
	// Who left is forgotten within a few batches.
	c.together = max(l.together, c.together*7/8)
	c.until = l.at.Add(min(batchWaitPatience*l.took, l.limit))
}

// expected is how many commands the next batch should hold; 1 is not to wait, as when fewer
// than least were outstanding together.
func (c *batchWait) expected(least int) int {
	if c.together < least {
		return 1
	}
	return min(c.together, eagerCommands)
}
