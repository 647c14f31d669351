package replicaset

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// expectationPatience is how long the cache may lag behind an own creation
// before the controller asks the API itself.
const expectationPatience = 30 * time.Second

// expectations remember own writes until the cache shows them, for each
// ReplicaSet by uid. Creations are counted before they are sent, as their event
// may come before their answer.
type expectations struct {
	mu  sync.Mutex
	set map[types.UID]*expected
}

type expected struct {
	creations int
	deletions map[types.UID]bool
	since     time.Time
}

func newExpectations() *expectations {
	return &expectations{set: map[types.UID]*expected{}}
}

// at returns the entry of a ReplicaSet; the caller holds mu.
func (e *expectations) at(rs types.UID) *expected {
	x := e.set[rs]
	if x == nil {
		x = &expected{deletions: map[types.UID]bool{}}
		e.set[rs] = x
	}
	return x
}

// expectCreations announces n creations.
func (e *expectations) expectCreations(rs types.UID, n int, now time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.at(rs)
	x.creations += n
	x.since = now
}

// withdraw takes back n creations that failed or were not tried.
func (e *expectations) withdraw(rs types.UID, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.set[rs]; x != nil {
		x.creations = max(0, x.creations-n)
	}
}

// created notes that the cache shows one more pod.
func (e *expectations) created(rs types.UID) { e.withdraw(rs, 1) }

// expectDeletion announces the deletion of a pod.
func (e *expectations) expectDeletion(rs, pod types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at(rs).deletions[pod] = true
}

// deleted notes that the cache shows the deletion, or that it failed.
func (e *expectations) deleted(rs, pod types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.set[rs]; x != nil {
		delete(x.deletions, pod)
	}
}

// check reports whether the cache shows all creations, and whether it has
// failed to for too long.
func (e *expectations) check(rs types.UID, now time.Time) (settled, expired bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.set[rs]
	if x == nil || x.creations == 0 {
		return true, false
	}
	return false, now.Sub(x.since) >= expectationPatience
}

// deleting copies the set of pods whose deletion is not seen yet.
func (e *expectations) deleting(rs types.UID) map[types.UID]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.set[rs]
	if x == nil || len(x.deletions) == 0 {
		return nil
	}
	out := make(map[types.UID]bool, len(x.deletions))
	for uid := range x.deletions {
		out[uid] = true
	}
	return out
}

// forget drops everything expected of a ReplicaSet.
func (e *expectations) forget(rs types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.set, rs)
}
