package house

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	askedMetric    = regexp.MustCompile(`\b(setpoint|kubelet)_[a-z0-9_]+`)
	ownMetric      = regexp.MustCompile(`"(setpoint_[a-z0-9_]+)"`)
	alertName      = regexp.MustCompile(`(?m)^ *- alert: (\w+)$`)
	commandHeading = regexp.MustCompile(`(?m)^##+ setpoint (.+)$`)
)

// TestHouseMetricsAreTold: nobody watches a metric that no page explains. Those with upstream's names mean what they mean there.
func TestHouseMetricsAreTold(t *testing.T) {
	var pages strings.Builder
	for file, text := range readTexts(t) {
		if strings.HasPrefix(file, "docs/") {
			pages.WriteString(text)
		}
	}
	names := map[string]bool{}
	eachSource(t, func(f *sourceFile) {
		for _, found := range ownMetric.FindAllStringSubmatch(f.text, -1) {
			names[found[1]] = names[found[1]] || !f.test && !strings.HasPrefix(f.dir, "test/")
		}
	})
	tell(t, untold(names, pages.String()))
}

// TestHouseMonitoringAsksForWhatIsTold: alerts and dashboards name metrics that there are (make metrics asks a running server).
func TestHouseMonitoringAsksForWhatIsTold(t *testing.T) {
	files, err := filepath.Glob("deploy/monitoring/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files in deploy/monitoring (%v)", err)
	}
	var product strings.Builder
	eachSource(t, func(f *sourceFile) {
		if !f.test {
			product.WriteString(f.text)
		}
	})
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range askedMetric.FindAllString(string(text), -1) {
			name = strings.TrimSuffix(name, "_bucket")
			whole := regexp.MustCompile(`\b` + strings.TrimPrefix(name, "setpoint_disk_") + `\b`)
			if !whole.MatchString(product.String()) {
				t.Errorf("%s asks for %s, which nothing tells\n\twhy: an alert without its metric never fires", file, name)
			}
		}
	}
}

// TestHouseAlertsArePlayed: make metrics plays each alert by its cause, and is not run by make test.
func TestHouseAlertsArePlayed(t *testing.T) {
	rules, err := os.ReadFile("deploy/monitoring/alerts.yaml")
	worlds, worldsErr := os.ReadFile("test/metrics/alerts_test.go")
	if err != nil || worldsErr != nil || len(alertName.FindAll(rules, -1)) < 20 {
		t.Fatalf("the alerts were not found (%v, %v)", err, worldsErr)
	}
	tell(t, unplayed(string(rules), string(worlds)))
}

// unplayed are the alerts whose cause no world has.
func unplayed(rules, worlds string) (found []string) {
	for _, name := range alertName.FindAllStringSubmatch(rules, -1) {
		if !strings.Contains(worlds, "\n\t\""+name[1]+"\":") {
			found = append(found, fmt.Sprintf("nothing plays the alert %s\n\twhy: an alert that nobody has seen fire may never do; give its cause a line of faults "+
				"in test/metrics/alerts_test.go, and its series a value in healthy there; then make metrics", name[1]))
		}
	}
	return found
}

// untold are the names of product code that no page has. One that ends with _ is the beginning of several.
func untold(names map[string]bool, pages string) (found []string) {
	for _, name := range slices.Sorted(maps.Keys(names)) {
		whole := regexp.MustCompile(`\b` + name + `(\b|[a-z])`)
		if !strings.HasSuffix(name, "_") {
			whole = regexp.MustCompile(`\b` + name + `\b`)
		}
		if names[name] && !whole.MatchString(pages) {
			found = append(found, fmt.Sprintf("no page of docs names the metric %s\n\twhy: nobody watches what nobody explains; docs/operations/watching.md has the others", name))
		}
	}
	return found
}

// readyText is what setpoint dev prints after the path of the kubeconfig.
var readyText = regexp.MustCompile(`"%s\\n\\n  export KUBECONFIG=%s(.*)\\n",`)

// TestHouseTheFirstOutputIsTold: the first thing that a newcomer compares with the page.
func TestHouseTheFirstOutputIsTold(t *testing.T) {
	source, err := os.ReadFile("cmd/setpoint/rundev.go")
	printed := readyText.FindSubmatch(source)
	if err != nil || printed == nil {
		t.Fatalf("cmd/setpoint/rundev.go prints nothing that was found (%v)", err)
	}
	want := "Setpoint is ready.\n\n  export KUBECONFIG=/var/lib/setpoint/admin.kubeconfig" + strings.ReplaceAll(string(printed[1]), `\n`, "\n") + "\n```"
	for _, page := range []string{"README.md", "docs/tutorial.md"} {
		if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not show what setpoint dev prints (%v)\n\twhy: a newcomer whose screen shows something else does not go on; write\n%s", page, err, want)
		}
	}
}

// playedElsewhere are commands that no script types, and what runs them.
var playedElsewhere = map[string]string{
	"envtest-assets": "make envtest",
}

// TestHouseCommandsArePlayed: each command of the reference is typed in a script, which runs the real binary.
func TestHouseCommandsArePlayed(t *testing.T) {
	reference, err := os.ReadFile("docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := filepath.Glob("cmd/setpoint/testdata/script/*.txtar")
	if err != nil || len(scripts) < 20 {
		t.Fatalf("%d scripts (%v)", len(scripts), err)
	}
	var played strings.Builder
	for _, script := range append(scripts, "docs/walkthrough.md") {
		text, err := os.ReadFile(script)
		if err != nil {
			t.Fatal(err)
		}
		played.Write(text)
	}
	used := map[string]bool{}
	for _, found := range commandHeading.FindAllStringSubmatch(string(reference), -1) {
		if isPlayed(found[1], played.String()) {
			continue
		}
		if used[found[1]] = true; playedElsewhere[found[1]] == "" {
			t.Errorf("no script types setpoint %s\n\twhy: only a script runs the binary, its flags and its exit code; cmd/setpoint/testdata/script has the others", found[1])
		}
	}
	noLeftovers(t, "playedElsewhere", playedElsewhere, used)
}

// isPlayed: the words of the command stand in one line after setpoint, whatever flags are among them.
func isPlayed(command, scripts string) bool {
	return regexp.MustCompile(`(?m)^.*\bsetpoint\b.*\b` + strings.Join(strings.Fields(command), `\b.*\b`) + `\b`).MatchString(scripts)
}

// TestHouseWhatIsNotTold: the rules above catch what they are for.
func TestHouseWhatIsNotTold(t *testing.T) {
	names := map[string]bool{"setpoint_a": true, "setpoint_ab": true, "setpoint_disk_": true, "setpoint_of_tests": false}
	if got := untold(names, "`setpoint_ab` and `setpoint_disk_low`"); len(got) != 1 || !strings.Contains(got[0], "setpoint_a\n") {
		t.Errorf("%v", got)
	}
	if got := unplayed("  - alert: A\n  - alert: Ab\n", "\n\t\"Ab\": {}"); len(got) != 1 || !strings.Contains(got[0], "alert A\n") {
		t.Errorf("%v", got)
	}
	for line, want := range map[string]bool{
		"exec setpoint cluster --server=x status": true, "! setpoint cluster status": true, "exec setpoint cluster": false, "cluster status": false,
	} {
		if isPlayed("cluster status", line) != want {
			t.Errorf("%s: not %v", line, want)
		}
	}
}
