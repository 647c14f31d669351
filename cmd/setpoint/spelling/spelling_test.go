package spelling

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNear(t *testing.T) {
	names := []string{"dev", "server", "servers", "simulated-nodes", "oidc-ca-file", "oidc-client-id", "oidc-groups-claim", "oidc-groups-prefix"}
	for _, c := range []struct {
		typed string
		want  []string
	}{
		{"dve", []string{"dev"}},                   // swapped
		{"get", nil},                               // two of three letters are wrong
		{"sever", []string{"server", "servers"}},   // nearest first
		{"Simulated", []string{"simulated-nodes"}}, // begins so
		{"si", nil},                                // too short to mean all that begin so
		{"oidc", []string{"oidc-ca-file", "oidc-client-id", "oidc-groups-claim"}}, // not all
		{"simulated_nodes", []string{"simulated-nodes"}},
		{"", nil},
		{"é", nil},
	} {
		if diff := cmp.Diff(c.want, Near(c.typed, names)); diff != "" {
			t.Errorf("%q: %s", c.typed, diff)
		}
	}
}
