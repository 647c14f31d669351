package admission

import (
	"context"
	"errors"
	"slices"
	"testing"

	"k8s.io/apiserver/pkg/admission"
)

// note writes down that it ran; again asks that the others run once more.
type note struct {
	onCreate
	name  string
	into  *[]string
	again bool
	err   error
}

func (n note) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	*n.into = append(*n.into, n.name)
	if n.again && !a.GetReinvocationContext().IsReinvoke() {
		a.GetReinvocationContext().SetShouldReinvoke()
	}
	return n.err
}

func TestTheChain(t *testing.T) {
	refused := errors.New("no")
	for name, c := range map[string]struct {
		second note
		want   []string
		err    error
	}{
		"in order":      {note{name: "b"}, []string{"a", "b", "c"}, nil},
		"first refusal": {note{name: "b", err: refused}, []string{"a", "b"}, refused},
		"once more":     {note{name: "b", again: true}, []string{"a", "b", "c", "a", "b", "c"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var ran []string
			c.second.into = &ran
			chain := newChain([]known{{"a", note{name: "a", into: &ran}}, {"b", c.second}, {"c", note{name: "c", into: &ran}}}, nil)
			w := newWorld(t, allowAll)
			err := chain.Admit(t.Context(), w.attributes(t, request{obj: podNamed("p")}), nil)
			if !errors.Is(err, c.err) || !slices.Equal(ran, c.want) {
				t.Errorf("ran %v, %v; want %v", ran, err, c.want)
			}
			ran = nil
			if err := chain.Admit(t.Context(), w.attributes(t, request{obj: podNamed("p"), old: podNamed("p")}), nil); err != nil || ran != nil {
				t.Errorf("an operation that nobody handles: %v, ran %v", err, ran)
			}
		})
	}
	if newChain(nil, nil).Handles(admission.Create) {
		t.Error("an empty chain handles something")
	}
}
