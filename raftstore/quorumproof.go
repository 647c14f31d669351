package raftstore

import (
	"context"
	"sync"
	"time"
)

const (
	// quorumProofLimit bounds how long the leader's reads wait for a word that a follower
	// sends anyway.
	quorumProofLimit = 5 * time.Millisecond
	// quorumProofReaders is how many reads must wait together to do so. Fewer are proved at once,
	// by messages of their own.
	quorumProofReaders = 4
)

// quorumProof has the leader's own reads proved by the words that followers send with theirs:
// messages of its own to two followers cost as much as serving several reads.
//
// Each answer to a follower names the round of the leader's reads that has begun, and the
// follower names it with its next word of the same term. It looks at its term after it got
// that answer, so it was in the leader's term after those reads began; the leader looks at
// its own term when the word arrives. Both together prove those reads as they prove the
// follower's own (Replica.VouchedFor). Like that proof, this one rests on terms that never
// go back, and on no clock: those below only bound how long a read waits.
// The zero value expects nobody.
type quorumProof struct {
	mu sync.Mutex
	// begun is the last round of reads that has begun. It counts through all terms.
	begun uint64
	// proved is the last round that was proved in the term.
	term, proved uint64
	// came is when a word last came, next is closed when another does.
	came time.Time
	next chan struct{}
}

// begin begins a round of reads.
func (w *quorumProof) begin() (round uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun++
	return w.begun
}

// heard notes the word of a follower which, with this server, is a quorum: that it was in
// the term after the round began, which it has seen in an answer. The answer to this word
// names the round that has begun by now.
func (w *quorumProof) heard(term, seen uint64) (begun uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.term != term {
		w.term, w.proved = term, 0
	}
	w.proved = max(w.proved, seen)
	w.came = time.Now()
	if w.next != nil {
		close(w.next)
		w.next = nil
	}
	return w.begun
}

// await reports whether a word proved the round in the term. It waits only while words come.
func (w *quorumProof) await(ctx context.Context, term, round uint64) bool {
	limit := time.NewTimer(quorumProofLimit)
	defer limit.Stop()
	for {
		proved, next := w.look(term, round)
		if next == nil {
			return proved
		}
		select {
		case <-next:
		case <-limit.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// look returns what to wait for, nil if there is nothing: the round is proved, or nobody
// sends words.
func (w *quorumProof) look(term, round uint64) (proved bool, next <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.term == term && w.proved >= round {
		return true, nil
	}
	if time.Since(w.came) > quorumProofLimit {
		return false, nil
	}
	if w.next == nil {
		w.next = make(chan struct{})
	}
	return false, w.next
}
