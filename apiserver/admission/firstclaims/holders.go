package firstclaims

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/internal/reserved"
)

// world is all objects of a kind, and how it is found out who has what.
type world[T metav1.Object] struct {
	kind    string
	objects []T
	// held are the things that an object gets unless an older one has them.
	held  func(T) []claim
	older func(a, b T) int
	book  *reserved.Book
}

// refusals say of each fresh claim of an object, which was old before, what it would take from whom: from who has it as things are.
func (w world[T]) refusals(now, old T, fresh []claim) (errs field.ErrorList) {
	first := w.firsts(old)
	for _, c := range fresh {
		for _, t := range first.contested(c.thing) {
			holder, held := first.holder(t)
			if held && holder.GetNamespace() != now.GetNamespace() && w.older(now, holder) < 0 {
				errs = append(errs, field.Invalid(c.path, c.value, fmt.Sprintf("%s belongs to %s %s/%s, which would lose it because this one is older: make a new %s",
					t, w.kind, holder.GetNamespace(), holder.GetName(), w.kind)))
				break
			}
		}
	}
	return errs
}

// firsts are the oldest that claim each thing.
type firsts[T metav1.Object] struct {
	world[T]
	of map[thing]T
	// at are the things of one address with a port.
	at map[reserved.Port][]thing
}

// firsts reads the claims of all objects, of which one is as it was.
func (w world[T]) firsts(old T) firsts[T] {
	f := firsts[T]{w, map[thing]T{}, map[reserved.Port][]thing{}}
	f.add(old)
	for _, o := range w.objects {
		same := o.GetNamespace() == old.GetNamespace() && o.GetName() == old.GetName()
		if !same && o.GetDeletionTimestamp() == nil {
			f.add(o)
		}
	}
	return f
}

func (f firsts[T]) add(o T) {
	for _, c := range f.held(o) {
		first, known := f.of[c.thing]
		if !known && c.address.IsValid() {
			f.at[c.port] = append(f.at[c.port], c.thing)
		}
		if !known || f.older(o, first) < 0 {
			f.of[c.thing] = o
		}
	}
}

// contested is the thing itself, and for a port of the nodes the addresses of nodes at which others claim it.
func (f firsts[T]) contested(t thing) []thing {
	things := []thing{t}
	if t.ofNodes() {
		for _, at := range f.at[t.port] {
			if f.book.HasMachine(at.address) {
				things = append(things, at)
			}
		}
	}
	return things
}

// holder is the oldest that claims the thing, or, of a port of one node's address, that port of all nodes.
func (f firsts[T]) holder(t thing) (holder T, held bool) {
	holder, held = f.of[t]
	if !t.address.IsValid() || !f.book.HasMachine(t.address) {
		return holder, held
	}
	ofNodes, all := f.of[thing{port: t.port}]
	if all && (!held || f.older(ofNodes, holder) < 0) {
		return ofNodes, true
	}
	return holder, held
}
