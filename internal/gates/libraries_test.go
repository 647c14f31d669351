package gates

import (
	"slices"
	"testing"

	_ "k8s.io/apiextensions-apiserver/pkg/features"
	_ "k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

// TestLibraries: the gates that upstream's libraries know in this program have their rows, with stage and default. The whole list is
// compared in test/differential/lists.
func TestLibraries(t *testing.T) {
	known := feature.DefaultMutableFeatureGate.GetAll()
	if len(known) < 2 {
		t.Fatal("the libraries know no gates")
	}
	for name, spec := range known {
		if name == "AllAlpha" || name == "AllBeta" {
			continue
		}
		i := slices.IndexFunc(gates, func(g Gate) bool { return g.Name == string(name) })
		if i < 0 || gates[i].Default != spec.Default || gates[i].Stage != stageOf(spec) {
			t.Errorf("%s is %s, %v by default, and has no such row", name, stageOf(spec), spec.Default)
		}
	}
}

// stageOf is a stage in the words of upstream's list.
func stageOf(spec featuregate.FeatureSpec) Stage {
	switch spec.PreRelease {
	case featuregate.GA:
		return GA
	case featuregate.Deprecated:
		return Deprecated
	case featuregate.Beta:
		return Beta
	default:
		return Alpha
	}
}
