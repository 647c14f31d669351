package kinds

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSubresourcesForDiscovery(t *testing.T) {
	want := map[string][]string{
		"pods":            {"attach", "binding", "eviction", "exec", "log", "portforward", "proxy"},
		"namespaces":      {"finalize"},
		"nodes":           {"proxy"},
		"serviceaccounts": {"token"},
		"services":        {"proxy"},
	}
	got := map[string][]string{}
	for _, kind := range All() {
		for _, sub := range kind.Subresources {
			got[kind.Plural] = append(got[kind.Plural], sub.Name)
			if sub.Kind.Empty() || len(sub.Verbs) == 0 || !scheme().Recognizes(sub.Kind) {
				t.Errorf("%s/%s is incomplete: %+v", kind.Plural, sub.Name, sub)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):\n", diff)
	}
}
