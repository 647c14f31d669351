package house

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// findingParts are what each script of findings has, as findings/README.md says, and why.
var findingParts = map[string]*regexp.Regexp{
	"the version in its head, such as v1.2.3":           regexp.MustCompile(`\A#!.*\n#[^\n]*\bv?\d+\.\d+`),
	"a comment that begins with Guess before:":          regexp.MustCompile(`(?m)^# Guess before: `),
	"a comment that begins with Behaviour:":             regexp.MustCompile(`(?m)^# Behaviour: `),
	"the day and the output that was seen":              regexp.MustCompile(`(?m)^# Output seen on .*:\n#   `),
	"set -euo pipefail, so that it fails":               regexp.MustCompile(`(?m)^set -euo pipefail$`),
	"a temporary folder that it removes":                regexp.MustCompile(`(?m)^dir=\$\(mktemp -d\)\ntrap .*rm -rf .*EXIT$`),
	"a diff with the output, so that a change is noted": regexp.MustCompile(`(?m)^diff `),
}

// TestHouseFindings: whoever reads one can run it, and sees when it is not so any more.
func TestHouseFindings(t *testing.T) {
	files, err := filepath.Glob("findings/*.sh")
	if err != nil || len(files) == 0 {
		t.Fatalf("no findings (%v)", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range missingOfFinding(string(text)) {
			t.Errorf("%s lacks %s\n\twhy: others must be able to run it, and to see when it is not so any more; findings/README.md has the form", file, part)
		}
	}
	finding := "#!/usr/bin/env bash\n# example.org/x v1.2.3: does this.\n#\n# Guess before: that.\n#\n# Behaviour: this.\n#\n# Output seen on a day:\n#   this\n" +
		"set -euo pipefail\ndir=$(mktemp -d)\ntrap 'rm -rf \"$dir\"' EXIT\ndiff output - <<'EOF'\n"
	if got := missingOfFinding(finding); len(got) > 0 {
		t.Errorf("a whole finding lacks %v", got)
	}
	for _, line := range []string{" v1.2.3", "# Guess", "# Behaviour", "#   this", "set", "trap", "diff"} {
		if len(missingOfFinding(strings.Replace(finding, line, "", 1))) == 0 {
			t.Errorf("a finding without %q passes", line)
		}
	}
}

func missingOfFinding(text string) (missing []string) {
	for part, is := range findingParts {
		if !is.MatchString(text) {
			missing = append(missing, part)
		}
	}
	slices.Sort(missing)
	return missing
}
