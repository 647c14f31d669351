package house

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	decisionParts = []string{"\nSince 20", "\n## Context\n", "\n## Decision\n", "\n## Consequences\n", "\n## What would change it\n"}
	ownedPath     = regexp.MustCompile(`(?m)^/(\S+)\s+(.+)$`)
	team          = regexp.MustCompile(`^@[a-z-]+/[a-z-]+$`)
)

// decisionWordsMax: what is longer explains the code, and belongs into docs/internals.
const decisionWordsMax = 300

// TestHouseDecisions: each has its number, its parts and its line in the list.
func TestHouseDecisions(t *testing.T) {
	files, err := filepath.Glob("docs/decisions/[0-9]*.md")
	if err != nil || len(files) < 10 {
		t.Fatalf("%d decisions found (%v)", len(files), err)
	}
	list, err := os.ReadFile("docs/decisions/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text, base := string(raw), filepath.Base(file)
		if !strings.HasPrefix(base, fmt.Sprintf("%04d-", i+1)) || !strings.HasPrefix(text, fmt.Sprintf("# %d. ", i+1)) {
			t.Errorf("%s is not number %d, in its name and its heading", file, i+1)
		}
		for _, part := range decisionParts {
			if strings.Count(text, part) != 1 {
				t.Errorf("%s does not have %q once", file, strings.TrimSpace(part))
			}
		}
		if words := len(strings.Fields(text)); words > decisionWordsMax {
			t.Errorf("%s has %d words, the limit is %d", file, words, decisionWordsMax)
		}
		if !strings.Contains(string(list), "("+base+")") {
			t.Errorf("docs/decisions/README.md does not list %s", base)
		}
	}
}

// TestHouseReviewers: .github/CODEOWNERS names folders that are there, and teams, since persons come and go.
func TestHouseReviewers(t *testing.T) {
	text, err := os.ReadFile(".github/CODEOWNERS")
	if err != nil {
		t.Fatal(err)
	}
	found := ownedPath.FindAllStringSubmatch(string(text), -1)
	if len(found) == 0 {
		t.Fatal("no path has reviewers")
	}
	for _, line := range found {
		if _, err := os.Stat(line[1]); err != nil {
			t.Errorf("CODEOWNERS names /%s, which does not exist", line[1])
		}
		for name := range strings.FieldsSeq(line[2]) {
			if !team.MatchString(name) {
				t.Errorf("CODEOWNERS: %s is no team", name)
			}
		}
	}
}
