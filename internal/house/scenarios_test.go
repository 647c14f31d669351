package house

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// scenarioTable lists upstream's integration tests, and where we prove each.
const scenarioTable = "docs/internals/upstream-scenarios.md"

var (
	// `TestA`, `TestB/some-case` in `controllers/job`
	namedTests   = regexp.MustCompile("((?:`Test[^`]+`, )*`Test[^`]+`) in `([a-z0-9/]+)`")
	namedCase    = regexp.MustCompile("conformance `([^`]+)`")
	scenarioRow  = regexp.MustCompile("(?m)^\\| `(Test\\w+)` \\| (.+) \\| (.+) \\|$")
	scenarioGate = regexp.MustCompile(`\b(gate|framework|not there|not served|no such|the same|there is no)\b`)
)

// TestHouseUpstreamScenarios: every test that the table names exists, and every row names one or says why not.
func TestHouseUpstreamScenarios(t *testing.T) {
	text, err := os.ReadFile(scenarioTable)
	if err != nil {
		t.Fatal(err)
	}
	passing, err := os.ReadFile("test/conformance/passing.txt")
	if err != nil {
		t.Fatal(err)
	}
	cases := strings.Split(string(passing), "\n")
	sources := map[string]string{}
	rows := scenarioRow.FindAllStringSubmatch(string(text), -1)
	if len(rows) < 200 {
		t.Fatalf("%s has %d rows", scenarioTable, len(rows))
	}
	for _, row := range rows {
		proofs := 0
		for _, found := range namedTests.FindAllStringSubmatch(row[3], -1) {
			for name := range strings.SplitSeq(found[1], ", ") {
				proofs++
				if !hasTest(t, sources, found[2], strings.Trim(name, "`")) {
					t.Errorf("%s: there is no %s in %s", row[1], name, found[2])
				}
			}
		}
		for _, found := range namedCase.FindAllStringSubmatch(row[3], -1) {
			proofs++
			if !slices.ContainsFunc(cases, func(passing string) bool { return strings.HasPrefix(passing, found[1]) }) {
				t.Errorf("%s: %q does not pass", row[1], found[1])
			}
		}
		if proofs == 0 && !scenarioGate.MatchString(row[3]) {
			t.Errorf("%s: neither a test nor a reason", row[1])
		}
	}
}

// hasTest says whether a folder's tests have the function, and the name of its subtest.
func hasTest(t *testing.T, sources map[string]string, folder, name string) bool {
	t.Helper()
	if _, read := sources[folder]; !read {
		files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sources[folder] += string(text)
		}
	}
	function, sub, _ := strings.Cut(name, "/")
	return strings.Contains(sources[folder], "\nfunc "+function+"(") && (sub == "" || strings.Contains(sources[folder], `"`+sub+`"`))
}
