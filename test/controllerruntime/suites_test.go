package controllerruntime

import (
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const (
	library = "sigs.k8s.io/controller-runtime"
	theirs  = library + "/pkg/envtest"
	ours    = "github.com/setpoint-io/setpoint/setpointtest/envtest"
	// suiteTimeout is how long one suite may take, on a machine that has other things to do.
	suiteTimeout = 15 * time.Minute
	outputShown  = 20_000
)

var (
	update = flag.Bool("update", false, "write RESULTS.md")
	only   = flag.String("suites", "", "packages below controller-runtime/pkg that run, separated by commas; default: all")
)

// suites are the packages below controller-runtime/pkg whose tests want an API server.
var suites = []string{
	"client", "client/apiutil", "cache", "controller", "controller/controllerutil", "builder", "webhook", "source", "manager",
}

// explained are what does not pass, and why.
var explained = map[string]string{
	"client/apiutil: TestApiMachinery":           "wants an envtest of Kubernetes 1.28, which it would download, for its older discovery",
	"client/apiutil: TestLazyRestMapperProvider": "wants an envtest of Kubernetes 1.28, which it would download, for its older discovery",
	"cache: Informer Cache without global DeepCopy Cache test as a Reader with structured objects should return an error when context is cancelled": "fails now and " +
		"then: the suite counts on an API server that takes longer to answer an informer's first list than the suite needs for its next line",
	"webhook: Webhook when running a webhook server with a manager " +
		"should reject create request for multi-webhook that rejects all requests": "fails now and then, on a busy machine: " +
		"the suite does not wait until the spec before it has ended its webhook server, which listens on the same port",
}

// outcome is how one suite ended.
type outcome struct {
	passed, failed, skipped int
	failures                []string
	took                    time.Duration
}

func TestSuitesWithTheBinary(t *testing.T) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		t.Fatal("KUBEBUILDER_ASSETS is not set: run make envtest-suites")
	}
	runAll(t, "with the binary", nil)
}

func TestSuitesInProcess(t *testing.T) { runAll(t, "in process", changeImports(t)) }

// runAll runs the suites, and compares with the section of RESULTS.md.
func runAll(t *testing.T, how string, flags []string) {
	results := map[string]outcome{}
	for _, suite := range chosen() {
		t.Run(suite, func(t *testing.T) {
			result := run(t, suite, flags)
			results[suite] = result
			for _, failure := range result.failures {
				if explained[failure] == "" {
					t.Errorf("%s fails, and nobody has explained why", failure)
				}
			}
			t.Logf("%d passed, %d failed, %d skipped, in %v", result.passed, result.failed, result.skipped, result.took.Round(time.Second))
		})
	}
	if *update {
		write(t, how, results)
	}
}

func chosen() []string {
	if *only == "" {
		return suites
	}
	return strings.Split(*only, ",")
}

// source is where the library lies.
func source(t *testing.T, flags ...string) string {
	t.Helper()
	dir, err := exec.Command("go", slices.Concat([]string{"list"}, flags, []string{"-m", "-f", "{{.Dir}}", library})...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(dir))
}

// changeImports returns the flag by which go sees a copy of the suites with the import changed.
func changeImports(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	copied := filepath.Join(dir, "controller-runtime")
	if err := os.CopyFS(copied, os.DirFS(source(t))); err != nil {
		t.Fatal(err)
	}
	for _, suite := range suites {
		files, err := filepath.Glob(filepath.Join(copied, "pkg", suite, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			put(t, file, strings.ReplaceAll(string(text), `"`+theirs+`"`, `"`+ours+`"`))
		}
	}
	modfile := filepath.Join(dir, "go.mod")
	for from, to := range map[string]string{"go.mod": modfile, "go.sum": filepath.Join(dir, "go.sum")} {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		put(t, to, string(text))
	}
	if said, err := exec.Command("go", "mod", "edit", "-replace", library+"="+copied, modfile).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return []string{"-modfile", modfile}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// run builds a suite and runs it where its source is, as go test does.
func run(t *testing.T, suite string, flags []string) (result outcome) {
	t.Helper()
	program, report := filepath.Join(t.TempDir(), "suite"), filepath.Join(t.TempDir(), "report.json")
	build := exec.Command("go", slices.Concat([]string{"test", "-vet=off", "-c", "-o", program}, flags, []string{library + "/pkg/" + suite})...)
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	begun := time.Now()
	test := exec.Command(program, "-test.v", "-test.timeout", suiteTimeout.String(), "--ginkgo.no-color", "--ginkgo.json-report", report)
	test.Dir = filepath.Join(source(t, flags...), "pkg", suite)
	said, err := test.CombinedOutput()
	result.took = time.Since(begun)
	result.readSpecs(t, suite, report)
	result.readTests(suite, string(said))
	if err != nil && result.failed == 0 {
		t.Errorf("%v: %s", err, said[max(0, len(said)-outputShown):])
	}
	for _, failure := range result.failures {
		if explained[failure] == "" {
			t.Logf("%s", said[max(0, len(said)-outputShown):])
			break
		}
	}
	return result
}

// readSpecs counts Ginkgo's specs.
func (o *outcome) readSpecs(t *testing.T, suite, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if os.IsNotExist(err) {
		return // it has none
	}
	var reports []struct {
		SpecReports []struct {
			ContainerHierarchyTexts           []string
			LeafNodeType, LeafNodeText, State string
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &reports)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, report := range reports {
		for _, spec := range report.SpecReports {
			o.count(spec.State, suite+": "+strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " "), spec.LeafNodeType == "It")
		}
	}
}

// ended is a line about a plain test, not one within another.
var ended = regexp.MustCompile(`(?m)^--- (PASS|FAIL|SKIP): (\S+)`)

// specsRunner are the names of tests that run specs and are none themselves.
var specsRunner = regexp.MustCompile(`^Test(Source|Builder|Controllerutil|Client)$`)

// readTests counts plain tests.
func (o *outcome) readTests(suite, said string) {
	states := map[string]string{"PASS": "passed", "FAIL": "failed", "SKIP": "skipped"}
	for _, match := range ended.FindAllStringSubmatch(said, -1) {
		if !specsRunner.MatchString(match[2]) {
			o.count(states[match[1]], suite+": "+match[2], true)
		}
	}
}

// count counts what is a test; what is none, such as BeforeSuite, counts if it failed.
func (o *outcome) count(state, name string, isTest bool) {
	switch state {
	case "passed":
		if isTest {
			o.passed++
		}
	case "pending", "skipped":
		if isTest {
			o.skipped++
		}
	default:
		o.failed++
		o.failures = append(o.failures, name)
	}
}
