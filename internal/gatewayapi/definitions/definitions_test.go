package definitions

import (
	"os"
	"strings"
	"testing"
)

// TestTheBundleIsThatOfTheModule: go.mod names the version, and generate was run with it.
func TestTheBundleIsThatOfTheModule(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	all, err := All()
	if err != nil || len(all) != 8 {
		t.Fatalf("%d definitions, %v", len(all), err)
	}
	for _, d := range all {
		if version := d.Annotations[BundleVersion]; !strings.Contains(string(mod), "\tsigs.k8s.io/gateway-api "+version+"\n") {
			t.Errorf("%s is of %q, which go.mod does not name", d.Name, version)
		}
		if d.Annotations["gateway.networking.k8s.io/channel"] != "standard" || len(d.Spec.Versions) == 0 || d.Spec.Names.Plural == "" {
			t.Errorf("%s: %+v", d.Name, d.ObjectMeta)
		}
	}
}
