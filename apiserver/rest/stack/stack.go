package stack

import (
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// stackBytes is what a request needs of its goroutine's stack, about.
	stackBytes = 16 << 10
	// readStackBytes is what a plain GET needs. Go keeps used stacks of that size at
	// hand, larger ones it takes from the heap.
	readStackBytes = 10 << 10
)

// Reserve grows the stack of a goroutine that has just begun to serve a
// request, in one step. A new stack is small, and doubling it again and again
// below upstream's deep calls means to walk and copy all of them each time.
func Reserve() { reserve(false) }

// ReserveRead does so for a request that is probably answered by a plain GET.
func ReserveRead() { reserveRead(false) }

// reserve needs room for its frame, whether it uses it or not.
//
//go:noinline
func reserve(use bool) (last byte) {
	if use {
		var room [stackBytes]byte
		fill((*[1]byte)(room[:]))
		last = room[stackBytes-1]
	}
	return last
}

//go:noinline
func reserveRead(use bool) (last byte) {
	if use {
		var room [readStackBytes]byte
		fill((*[1]byte)(room[:]))
		last = room[readStackBytes-1]
	}
	return last
}

//go:noinline
func fill(room *[1]byte) { room[0]++ }

// Creater is what upstream's creating handler calls first in the goroutine that it
// starts for each write.
type Creater struct{ runtime.ObjectCreater }

// New implements runtime.ObjectCreater.
func (c Creater) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	Reserve()
	return c.ObjectCreater.New(kind)
}
