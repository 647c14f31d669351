package house

import (
	"os"
	"path"
	"slices"
	"strings"
	"testing"
)

// testLibraries are those requirements of go.mod that tests alone import, and for what. What importers carry of them, and why they have no
// module of their own, says docs/internals/libraries.md.
var testLibraries = map[string]string{
	"github.com/anishathalye/porcupine": "judges whether a history is linearizable",
	"github.com/google/go-cmp":          "tells differences; libraries of the product have it too",
	"github.com/hanwen/go-fuse/v2":      "the disk whose power can be cut",
	"github.com/prometheus/common":      "reads metrics; libraries of the product have it too",
	"github.com/rclone/gofakes3":        "an object store that others wrote, for backups",
	"github.com/rogpeppe/go-internal":   "runs script tests",
	"k8s.io/kms":                        "a plugin for keys; libraries of the product have it too",
	"sigs.k8s.io/randfill":              "fills objects at random; libraries of the product have it too",
}

// TestHouseTestLibraries: what tests require, importers carry in their graph, so each is there knowingly.
func TestHouseTestLibraries(t *testing.T) {
	product := map[string]bool{}
	eachSource(t, func(f *sourceFile) {
		if !f.test && !isForTests(f.dir) {
			for _, imported := range f.imports {
				product[imported] = true
			}
		}
	})
	used := map[string]bool{}
	for _, library := range directRequirements(t) {
		if importsOf(library, product) {
			continue
		}
		if used[library] = true; testLibraries[library] == "" {
			t.Errorf("go.mod requires %s, which only tests import\n\twhy it matters: importers of the module have its version among theirs; "+
				"use what is required already, or write into testLibraries what it is for", library)
		}
	}
	noLeftovers(t, "testLibraries", testLibraries, used)
}

// isForTests: packages of test, and those beside a part that its tests share, as kindstest.
func isForTests(dir string) bool {
	return strings.HasPrefix(dir, "test/") || strings.HasSuffix(path.Base(dir), "test") && !slices.Contains(publicPackages, dir)
}

// directRequirements are the modules that go.mod does not call indirect. Those of tools are.
func directRequirements(t *testing.T) (libraries []string) {
	t.Helper()
	text, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 2 && strings.HasPrefix(fields[1], "v") {
			libraries = append(libraries, fields[0])
		}
	}
	if len(libraries) < 50 {
		t.Fatalf("go.mod has only %d requirements: it was not read", len(libraries))
	}
	return libraries
}

func importsOf(library string, imported map[string]bool) bool {
	for name := range imported {
		if name == library || strings.HasPrefix(name, library+"/") {
			return true
		}
	}
	return false
}
