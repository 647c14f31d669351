package conditions

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind is a kind of conditions: those of the Go type C, with types T and statuses S.
type Kind[C any, T, S ~string] struct {
	parts func(c *C) (t T, status S, changed *metav1.Time)
}

// Of makes a Kind of the function that tells the parts that all conditions have: type,
// status, and where the condition keeps the time of its last transition.
func Of[C any, T, S ~string](parts func(c *C) (t T, status S, changed *metav1.Time)) Kind[C, T, S] {
	return Kind[C, T, S]{parts}
}

// Find is the condition of a type, in the list itself; nil if there is none.
func (k Kind[C, T, S]) Find(list []C, t T) *C {
	if i := k.index(list, t); i >= 0 {
		return &list[i]
	}
	return nil
}

func (k Kind[C, T, S]) index(list []C, t T) int {
	for i := range list {
		if k.typeOf(&list[i]) == t {
			return i
		}
	}
	return -1
}

func (k Kind[C, T, S]) typeOf(c *C) T {
	t, _, _ := k.parts(c)
	return t
}

// Is reports whether there is a condition of a type with this status.
func (k Kind[C, T, S]) Is(list []C, t T, status S) bool {
	c := k.Find(list, t)
	if c == nil {
		return false
	}
	_, is, _ := k.parts(c)
	return is == status
}

// Without is the list without the condition of a type.
func (k Kind[C, T, S]) Without(list []C, t T) []C {
	return slices.DeleteFunc(slices.Clone(list), func(c C) bool { return k.typeOf(&c) == t })
}

// Dated is next with the time of its last transition: that of the condition in the list if
// that has the same status, or now.
func (k Kind[C, T, S]) Dated(list []C, next C, now time.Time) C {
	t, status, changed := k.parts(&next)
	*changed = metav1.NewTime(now)
	if k.Is(list, t, status) {
		_, _, since := k.parts(k.Find(list, t))
		*changed = *since
	}
	return next
}

// Set is the list with next, Dated, in the place of the condition of its type, or at the end.
func (k Kind[C, T, S]) Set(list []C, next C, now time.Time) []C {
	next = k.Dated(list, next, now)
	i := k.index(list, k.typeOf(&next))
	if i < 0 {
		return append(slices.Clip(list), next)
	}
	list = slices.Clone(list)
	list[i] = next
	return list
}

// SetLast is the list with next, as it is, at the end, in place of the condition of its type.
func (k Kind[C, T, S]) SetLast(list []C, next C) []C {
	return append(k.Without(list, k.typeOf(&next)), next)
}
