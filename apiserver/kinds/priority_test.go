package kinds

import "testing"

func TestEveryGroupHasAPlace(t *testing.T) {
	for _, kind := range All() {
		gv := kind.GroupVersionKind.GroupVersion()
		if p := PriorityOf(gv); p.Group == customGroupPriority || p.Version <= 0 {
			t.Errorf("%s: %+v is that of a custom resource", gv, p)
		}
	}
}
