package operators

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const page = "docs/go-test.md"

var (
	// named is a block of the page under the name of a file.
	named = regexp.MustCompile("(?m)^\\*\\*([a-z_/.]+)\\*\\*, [^\n]*:\n\n```[a-z]+\n((?s:.*?))^```")
	// edits are the page's commands that lead to a checkout.
	edits = regexp.MustCompile(`(?m)^go mod edit -replace (\S+)=\.\./setpoint(\S*)$`)
)

// TestPagesTyped types the five minutes of the page in an empty folder, as somebody does who has a checkout, and runs the test there. It
// leaves out go mod init and go mod tidy, which asks for more modules than are there without network: the module's name is written, and
// the versions are those of this module. It leaves out vet, which goes through all packages that the test links.
func TestPagesTyped(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, page))
	must(t, err)
	folder := t.TempDir()
	for _, file := range named.FindAllStringSubmatch(string(text), -1) {
		path := filepath.Join(folder, file[1])
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(file[2]), 0o600))
	}
	sums, err := os.ReadFile("go.sum")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "go.sum"), sums, 0o600))
	must(t, os.WriteFile(filepath.Join(folder, "go.mod"), versions(t, string(text)), 0o600))
	play := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-mod=mod", "-count=1", "-v", "./...")
	play.Dir = folder
	if said, err := play.CombinedOutput(); err != nil || !strings.Contains(string(said), "--- PASS: TestShop ") {
		t.Errorf("%v\n%s", err, said)
	}
}

// versions is this module's go.mod under the page's name, with the page's replacements.
func versions(t *testing.T, text string) []byte {
	t.Helper()
	own, err := os.ReadFile("go.mod")
	must(t, err)
	checkout, err := filepath.Abs(root)
	must(t, err)
	required, _, _ := strings.Cut(string(own), "\nreplace ")
	_, required, _ = strings.Cut(required, "\n")
	file := "module example.com/shop\n" + required
	for _, edit := range edits.FindAllStringSubmatch(text, -1) {
		file += "\nreplace " + edit[1] + " => " + checkout + edit[2] + "\n"
	}
	return []byte(file)
}
