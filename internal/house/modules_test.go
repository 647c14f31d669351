package house

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// modulesOfTests are modules beside the product's that use its libraries. Their
// library versions are the product's, so that a cold CI compiles client-go once.
// test/metrics is none of them: Prometheus wants newer ones, and make test leaves it out. Nor are
// test/envtest/upstream and test/csi: they build upstream's programs with the versions that upstream chose.
var modulesOfTests = []string{"test/bench", "test/clients", "test/conformance", "test/differential", "test/envtest", "test/operators",
	"test/controllerruntime", "test/judges/kstatus", "setpointtest/envtest"}

func TestHouseModulesShareVersions(t *testing.T) {
	product := requirements(t, ".")
	for _, dir := range modulesOfTests {
		for library, version := range requirements(t, dir) {
			if want, shared := product[library]; shared && version != want {
				t.Errorf("%s requires %s %s, the product %s: go -C %s get %s@%s", dir, library, version, want, dir, library, want)
			}
		}
	}
}

// requirements reads the versions in the go.mod of a folder.
func requirements(t *testing.T, dir string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(strings.TrimPrefix(line, "require "))
		if len(fields) >= 2 && strings.HasPrefix(fields[1], "v") {
			versions[fields[0]] = fields[1]
		}
	}
	if len(versions) == 0 {
		t.Fatalf("%s/go.mod requires nothing", dir)
	}
	return versions
}
