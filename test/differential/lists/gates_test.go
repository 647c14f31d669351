package lists

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/internal/gates"
)

// gateList is where upstream writes down its gates, with each version that changed one.
const gateList = "test/compatibility_lifecycle/reference/versioned_feature_list.yaml"

// minor is the version that Setpoint serves: 1.37.
const minor = 37

type upstreamGate struct {
	Name           string `json:"name"`
	VersionedSpecs []struct {
		Default    bool        `json:"default"`
		PreRelease gates.Stage `json:"preRelease"`
		Version    string      `json:"version"`
	} `json:"versionedSpecs"`
}

// at is what a gate is in the version that Setpoint serves; false if it is not there yet.
func (u upstreamGate) at(t *testing.T) (stage gates.Stage, on, known bool) {
	t.Helper()
	latest := -1
	for _, spec := range u.VersionedSpecs {
		n, err := strconv.Atoi(strings.TrimPrefix(spec.Version, "1."))
		if err != nil {
			t.Fatalf("%s: version %q", u.Name, spec.Version)
		}
		if n <= minor && n >= latest { // of two rows the latter is for clusters that are of this version alone
			stage, on, known, latest = spec.PreRelease, spec.Default, true, n
		}
	}
	return stage, on, known
}

// TestFeatureGates: internal/gates has upstream's gates, with their stages and defaults.
func TestFeatureGates(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(source(t, "k8s.io/kubernetes"), gateList))
	if err != nil {
		t.Fatal(err)
	}
	var all []upstreamGate
	if err := yaml.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	ours := map[string]gates.Gate{}
	for _, g := range gates.All() {
		ours[g.Name] = g
	}
	if len(ours) != len(gates.All()) {
		t.Error("a gate stands twice in internal/gates")
	}
	for _, u := range all {
		stage, on, known := u.at(t)
		g, here := ours[u.Name]
		if known && (!here || g.Stage != stage || g.Default != on) {
			t.Errorf("%s is %s, %v by default, and has this row: %+v", u.Name, stage, on, g)
		}
		if known {
			delete(ours, u.Name)
		}
	}
	for name := range ours {
		t.Errorf("upstream has no gate %s", name)
	}
}
