package views

import (
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
)

// Kind is what a term says.
type Kind int

// The kinds of terms.
const (
	Requires Kind = iota // required affinity
	Excludes             // required anti-affinity
	Prefers              // preferred affinity
	Avoids               // preferred anti-affinity
)

// Term is what a pod says of other pods.
type Term struct {
	Query
	Kind   Kind
	Key    string // the topology key
	Weight int64  // of preferences: 1 to 100

	id string
}

// NewTerm gives a term that does not change any more.
func NewTerm(q Query, kind Kind, key string, weight int64) *Term {
	t := &Term{Query: q, Kind: kind, Key: key, Weight: weight}
	t.id = fmt.Sprint(kind, " ", weight, " ", key, "\n", q.ID())
	return t
}

// Bearer counts the placed pods that have the same term.
type Bearer struct {
	*Term
	*Tally

	pods int64
	spot spot
}

// bearers are the terms of all placed pods.
type bearers struct {
	by      map[string]*Bearer // by the term's id
	index   index[*Bearer]
	version uint64
}

func newBearers() bearers {
	return bearers{by: map[string]*Bearer{}, index: index[*Bearer]{}}
}

// bear counts that so many more pods on the slot have the term.
func (v *Views) bear(slot int, t *Term, n int64) {
	b := v.bearers.by[t.id]
	if b == nil {
		g := &group{}
		b = &Bearer{Term: t, Tally: v.tally(g, v.region(Zoning{Key: t.Key}))}
		b.users++
		b.spot = v.bearers.index.add(t.spots(), b)
		v.bearers.by[t.id] = b
		v.bearers.version++
	}
	b.group.add(slot, n)
	if b.pods += n; b.pods == 0 {
		v.Release(b.Tally)
		v.bearers.index.remove(b.spot, b)
		delete(v.bearers.by, t.id)
		v.bearers.version++
	}
}

// BearersVersion changes when Bearers may give others than before.
func (v *Views) BearersVersion() uint64 { return v.bearers.version }

// Bearers visits the terms of placed pods that select a pod, each once.
func (v *Views) Bearers(namespace string, set labels.Set, visit func(*Bearer)) {
	v.bearers.index.each(namespace, set, func(b *Bearer) {
		if b.Matches(namespace, set, v.namespaceLabels) {
			visit(b)
		}
	})
}
