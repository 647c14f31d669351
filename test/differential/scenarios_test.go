package differential

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryIntegrationTestHasItsRow: docs/internals/upstream-scenarios.md lists every test function of these folders of
// upstream's test/integration, and no other.
func TestEveryIntegrationTestHasItsRow(t *testing.T) {
	table, err := os.ReadFile("../../docs/internals/upstream-scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	if err != nil {
		t.Fatal(err)
	}
	sections := strings.Split(string(table), "\n## ")
	if len(sections) != 11 {
		t.Fatalf("%d sections", len(sections))
	}
	for _, section := range sections[1:] {
		folder, rows, _ := strings.Cut(section, "\n")
		listed := map[string]bool{}
		for _, row := range regexp.MustCompile("(?m)^\\| `(Test\\w+)` \\|").FindAllStringSubmatch(rows, -1) {
			if listed[row[1]] {
				t.Errorf("%s stands twice in %s", row[1], folder)
			}
			listed[row[1]] = true
		}
		for _, name := range integrationTests(t, filepath.Join(strings.TrimSpace(string(module)), "test/integration", folder)) {
			if !listed[name] {
				t.Errorf("%s has no row in %s", name, folder)
			}
			delete(listed, name)
		}
		for name := range listed {
			t.Errorf("upstream has no %s in %s", name, folder)
		}
	}
}

// integrationTests are the names of all test functions in a folder and below.
func integrationTests(t *testing.T, folder string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			if found[1] != "TestMain" {
				names = append(names, found[1])
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
