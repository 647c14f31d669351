package expect

import (
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// firstBatch is how many children are created before it is known that the API
// accepts them; each accepted batch doubles the next, so that a refused
// template costs one request and not hundreds.
const firstBatch = 1

// Create creates n children, with one for each i below n, in doubling batches,
// and stops after the first batch that had an error. One returns the uid of what it
// created, or none if it found nothing to create. It goes on with the size
// that the last pass reached: thousands of children take several passes, and
// each batch waits for a commit.
func (e *Expectations) Create(owner types.UID, n int, now time.Time, one func(i int) (types.UID, error)) error {
	e.send(owner, n, now)
	done := 0
	for size := max(firstBatch, e.batch(owner)); done < n; size *= 2 {
		start, batch := done, min(size, n-done)
		errs := Parallel(batch, func(i int) error {
			child, err := one(start + i)
			e.answered(owner, 1, child)
			return err
		})
		done += batch
		if len(errs) > 0 {
			e.setBatch(owner, 0)
			if slices.ContainsFunc(errs, unknown) {
				e.doubt(owner)
			}
			e.answered(owner, n-done, "")
			return errors.Join(errs...)
		}
		e.setBatch(owner, 2*size)
	}
	return nil
}

// unknown tells whether a write that ended with err may have been carried out all the same.
func unknown(err error) bool {
	reason := apierrors.ReasonForError(err)
	return reason == metav1.StatusReasonUnknown || reason == metav1.StatusReasonTimeout || reason == metav1.StatusReasonServerTimeout
}

// doubt says that the cache and the expectations of an owner do not tell any more how many children it has.
func (e *Expectations) doubt(owner types.UID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at(owner).doubted = true
}

// Complete ends the growth of batches: a pass found nothing to create.
func (e *Expectations) Complete(owner types.UID) { e.setBatch(owner, 0) }

// batch is how many children may be created at once; 0 when that is not known.
func (e *Expectations) batch(owner types.UID) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.set[owner]; x != nil {
		return x.batch
	}
	return 0
}

func (e *Expectations) setBatch(owner types.UID, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if x := e.set[owner]; x != nil {
		x.batch = min(n, e.burst)
	}
}

// Parallel runs f n times at once and returns the errors.
func Parallel(n int, f func(i int) error) []error {
	results := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { results[i] = f(i) })
	}
	wg.Wait()
	return slices.DeleteFunc(results, func(err error) bool { return err == nil })
}
