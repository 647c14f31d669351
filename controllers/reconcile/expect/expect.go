package expect

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Patience is how long the cache may lag behind an own creation before the
// controller asks the API itself.
const Patience = 30 * time.Second

// Expectations remember own writes until the cache shows them, for each owner.
type Expectations struct {
	burst int
	mu    sync.Mutex
	set   map[types.UID]*expected
}

type expected struct {
	// sent is how many creations wait for their answers; early are the children that the cache showed meanwhile.
	sent  int
	early map[types.UID]bool
	// awaited are children that the API has and the cache may lack, since the time of the last.
	awaited map[types.UID]bool
	since   time.Time
	// doubted: a creation ended without an answer.
	doubted   bool
	deletions map[types.UID]bool
	batch     int // how many creations at once the API may be sent; 0: not known yet
}

// New returns empty expectations of a controller that creates at most burst
// children of an owner at once.
func New(burst int) *Expectations {
	return &Expectations{burst: burst, set: map[types.UID]*expected{}}
}

// at returns the entry of an owner; the caller holds mu.
func (e *Expectations) at(owner types.UID) *expected {
	x := e.set[owner]
	if x == nil {
		x = &expected{early: map[types.UID]bool{}, awaited: map[types.UID]bool{}, deletions: map[types.UID]bool{}}
		e.set[owner] = x
	}
	return x
}

// send announces n creations.
func (e *Expectations) send(owner types.UID, n int, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.at(owner)
	x.sent += n
	x.since = now
}

// answered notes that n creations were answered, or not sent after all. Of one that succeeded child is what was created.
func (e *Expectations) answered(owner types.UID, n int, child types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.set[owner]
	if x == nil {
		return // it is deleted, and forgotten
	}
	x.sent -= n
	if child != "" && !x.early[child] {
		x.awaited[child] = true
	}
	if x.sent == 0 {
		clear(x.early)
	}
}

// Deletion announces the deletion of a child.
func (e *Expectations) Deletion(owner, child types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at(owner).deletions[child] = true
}

// Deleted notes that the cache shows the deletion, or that it failed.
func (e *Expectations) Deleted(owner, child types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.set[owner]; x != nil {
		delete(x.deletions, child)
	}
}

// Seen tells what the cache now shows of a child: before is nil for an added
// one, after for a removed one.
func (e *Expectations) Seen(before, after metav1.Object) {
	child := after
	if child == nil {
		child = before
	}
	ref := metav1.GetControllerOfNoCopy(child)
	if ref == nil {
		return
	}
	e.shown(ref.UID, child.GetUID())
	if after == nil || after.GetDeletionTimestamp() != nil {
		e.Deleted(ref.UID, child.GetUID())
	}
}

// Check reports whether the cache shows all creations, and whether the API itself has to be asked: when the cache has
// failed to show them for too long, or when a creation ended without an answer.
func (e *Expectations) Check(owner types.UID, now time.Time) (settled, expired bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.set[owner]
	if x != nil && x.doubted {
		return false, true
	}
	if x == nil || x.sent == 0 && len(x.awaited) == 0 {
		return true, false
	}
	return false, now.Sub(x.since) >= Patience
}

// Deleting copies the set of children whose deletion is not seen yet.
func (e *Expectations) Deleting(owner types.UID) map[types.UID]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.set[owner]
	if x == nil || len(x.deletions) == 0 {
		return nil
	}
	out := make(map[types.UID]bool, len(x.deletions))
	for uid := range x.deletions {
		out[uid] = true
	}
	return out
}

// Forget drops everything expected of an owner.
func (e *Expectations) Forget(owner types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.set, owner)
}
