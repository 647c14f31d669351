package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// The rules of the house, checked on the source itself: a rule that no machine
// checks is a wish. Each failure says why the rule is there.

const module = "github.com/setpoint-io/setpoint"

const (
	functionLinesMax = 70
	testLinesMax     = 150 // tests are longer by the tables in them
	fileLinesMax     = 500
	packageLinesMax  = 4000
	// columnsMax counts a tab as one, in product code. A text that others or upstream word may be longer.
	columnsMax = 140
)

// longText is a string in a line that may be longer than columnsMax.
var longText = regexp.MustCompile("\"[^\"]{40,}|`[^`]{40,}|//go:generate")

// A libraryRule says which libraries the packages that match in may not import, unless they
// match except; what our packages may import of each other is in rooms_test.go. A pattern is a
// path below the module or an import path: "x/..." is x and everything below it, "std" the
// standard library, "..." everything.
type libraryRule struct {
	in     []string
	except []string
	forbid []string
	allow  []string // exceptions from forbid
	tests  bool     // the rule holds for tests too
	why    string
}

var libraryRules = []libraryRule{
	{
		in: []string{"..."}, forbid: []string{"k8s.io/kubernetes/..."}, tests: true,
		why: "k8s.io/kubernetes is not published as a library: its internals change without notice and bring a thousand packages",
	},
	{
		in: []string{"raftstore/..."}, forbid: []string{"k8s.io/...", "sigs.k8s.io/..."}, tests: true,
		why: "the store knows keys, revisions, uids and fences; values are opaque, so no fault above it can harm what is stored",
	},
	{
		in: []string{"..."}, except: []string{"raftstore/replica/..."}, forbid: []string{"github.com/hashicorp/raft/...", "github.com/hashicorp/raft-boltdb/...", "go.etcd.io/bbolt/..."},
		tests: true,
		why:   "one package answers for the log on disk and for what raft's API means; the others see Propose, ReadIndex, Watch",
	},
	{
		in: []string{"..."}, except: []string{"agent/node/gossip"}, forbid: []string{"github.com/hashicorp/memberlist/..."},
		why: "one package keeps the promise that nothing is gossiped without the key",
	},
	{
		in: []string{"..."}, except: []string{"agent/net/dns/..."}, forbid: []string{"github.com/miekg/dns/..."},
		why: "one part of the agent answers for what is sent to whom about names",
	},
	{
		in: []string{"raftstore/state", "raftstore/record", "raftstore/wire", "raftstore/command"},
		forbid: []string{"time", "math/rand/...", "crypto/rand", "os/...", "net/...", "log/...", "io/fs", "github.com/hashicorp/...",
			"path/filepath", "runtime/...", "syscall", "testing/..."},
		why: "Apply is a function of the log: a clock, a random number or I/O would make replicas differ",
	},
	{
		in: []string{"apiserver/..."}, forbid: []string{"k8s.io/client-go/kubernetes/scheme"},
		why: "the global scheme can be changed by any library in the process; the API has its own",
	},
	{
		in: []string{
			"apiserver/kinds/...",
			"apiserver/resource",
			"apiserver/explain",
		}, except: []string{"apiserver/kinds/kindstest"}, forbid: []string{"net/http", "os/...", "k8s.io/client-go/...", "math/rand/...", "log/..."},
		allow: []string{"k8s.io/client-go/util/jsonpath"},
		why:   "what a kind says is pure: the same object gives the same answer on every replica",
	},
	{
		in: []string{"controllers/...", "agent/..."}, forbid: []string{"k8s.io/apiserver/..."},
		why: "controllers and agents are clients: they could speak to any Kubernetes API, and are tested so",
	},
	{
		in: []string{"controllers/scheduler/views", "controllers/scheduler/plugin", "controllers/scheduler/plugins"}, forbid: []string{"k8s.io/client-go/...", "time", "context", "math/rand/...", "log/..."},
		why: "plugins are pure functions: the same world gives the same placement and the same explanation",
	},
	{
		in: []string{"internal/podfields"}, forbid: []string{"..."}, allow: []string{"std", "k8s.io/api/core/v1"},
		why: "agents and the API import it, and must not meet in it: it is a table, and a walk over the API's types",
	},
	{
		in: []string{"internal/unattended"}, forbid: []string{"..."}, allow: []string{"k8s.io/api/core/v1"},
		why: "controllers and the API import it, and must not meet in it: it is a table",
	},
	{
		in: []string{"agent/runtime/cri/embedded/boot", "agent/runtime/cri/embedded/shim"}, forbid: []string{"..."},
		allow: []string{"std", "golang.org/x/sys/...", module + "/agent/runtime/cri/embedded/boot"},
		why:   "these run once per pod and container: what they link, every pod pays for in memory and start time",
	},
	{
		in: []string{"internal/house"}, forbid: []string{"..."}, allow: []string{"std"}, tests: true,
		why: "the rules are judged in seconds, also when nothing of the product has been compiled yet",
	},
}

// generousFunctions may be longer than functionLinesMax. The list only shrinks.
var generousFunctions = map[string]string{
	"agent/runtime/cri/embedded/seccomp/numbers_amd64.go:systemCalls": "is a table",
	"agent/runtime/cri/embedded/seccomp/numbers_arm64.go:systemCalls": "is a table",
}

// realSleeps are test files that sleep outside a bubble, and why they must.
var realSleeps = map[string]string{
	"agent/embedded_test.go":                      "waits for real containers, polling with a deadline",
	"agent/net/policy/table/main_test.go":         "waits for the kernel of a network namespace, polling with a deadline",
	"apiserver/dynamic_test.go":                   "waits for informers over a real socket, polling with a deadline",
	"server/stopwrite_test.go":                    "is a webhook that takes longer than a stop, over a real socket",
	"agent/net/network/things_test.go":            "waits for what the kernel undoes on its own, polling with a deadline",
	"test/envtest/environment_test.go":            "waits for real processes, polling with a deadline",
	"test/nodefaults/node_test.go":                "looks at real containers at a pace, with a deadline",
	"server/atrest_test.go":                       "waits for servers over real sockets, polling with a deadline",
	"cluster_test.go":                             "waits for a cluster over real sockets, polling with a deadline",
	"server/joining_test.go":                      "waits for servers over real sockets, polling with a deadline",
	"server/livenesscluster_test.go":              "waits for real gossip, polling with a deadline",
	"raftstore/diskfull_test.go":                  "waits for servers on real disks, polling with a deadline",
	"raftstore/replica/terms_test.go":             "waits for raft over a real transport, polling with a deadline",
	"raftstore/sockets_test.go":                   "waits for a leader over real sockets, polling with a deadline",
	"agent/runtime/cri/embedded/harness_test.go":  "waits for real processes, polling with a deadline",
	"cmd/setpoint/standin/standin_test.go":        "asks a server over a real socket until it answers, with a deadline",
	"cmd/setpoint/cri_test.go":                    "waits for the log of a real container, with a deadline",
	"cmd/setpoint/script_test.go":                 "asks a real process until it answers as wanted, with a deadline",
	"test/compose/agent_test.go":                  "watches containers, which live in real time",
	"test/compose/cluster_test.go":                "asks containers until they answer as wanted, with a deadline",
	"test/compose/leader_test.go":                 "writes to real servers at a pace",
	"raftstore/forward/forward_test.go":           "is a server slower than its client's patience, over a real socket",
	"agent/runtime/cri/embedded/workload_test.go": "is the workload inside a container: it sleeps until it is killed",
}

// bubbleSleeps are test files whose functions run in the bubble of another file.
var bubbleSleeps = map[string]string{
	"yearsload_internal_test.go":         "is the load of TestElevenYears, which runs it in a bubble",
	"yearskilled_internal_test.go":       "is what clients of TestElevenYears do while servers are killed, in its bubble",
	"agent/node/gossip/network_test.go":  "the network that members in a bubble see",
	"test/differential/podgc_test.go":    "plays in the world of world_test.go",
	"test/differential/taints_test.go":   "plays in the world of world_test.go",
	"agent/pods/ephemeral_test.go":       "inBubble",
	"agent/pods/evict_test.go":           "inBubble",
	"agent/pods/pinning_test.go":         "inBubble",
	"agent/pods/refuse_test.go":          "inBubble",
	"agent/pods/resize_test.go":          "inBubble",
	"agent/pods/probes/schedule_test.go": "inBubble; and one server, over a real socket, that starts late",
}

// allowedSkips are test files that may skip, and why.
var allowedSkips = map[string]string{
	"raftstore/diskfull_test.go":                            "mounting small file systems needs root",
	"test/machines/install_test.go":                         "namespaces, mounts and cgroups need root",
	"test/machines/machines_test.go":                        "namespaces, mounts and cgroups need root",
	"test/machines/replace_test.go":                         "namespaces, mounts and cgroups need root",
	"test/machines/overlay_test.go":                         "namespaces, mounts and cgroups need root",
	"test/clockskew/clockskew_test.go":                      "writing another process's memory needs root; the code is for amd64",
	"test/powercut/powercut_test.go":                        "mounting needs root and FUSE",
	"test/escape/escape_test.go":                            "real containers need root",
	"test/nodefaults/faults_test.go":                        "real containers need root",
	"test/nodefaults/clock_test.go":                         "the code that sets the clock of one process is for amd64",
	"test/mutants/cage_test.go":                             "namespaces need root",
	"test/mutants/all_test.go":                              "namespaces and real containers need root",
	"agent/base/machine/machinetest/unmount_test.go":        "mounts need root",
	"agent/embedded_test.go":                                "namespaces, mounts and cgroups need root",
	"agent/net/network/upkeep/notifications_test.go":        "network namespaces need root",
	"agent/volumes/volumes_test.go":                         "mounts need root",
	"agent/volumes/local/store_test.go":                     "loop devices and mounts need root",
	"agent/runtime/cri/embedded/harness_test.go":            "namespaces, mounts and cgroups need root",
	"agent/embedded_swap_test.go":                           "some kernels do not count swap; make vm has one that does",
	"agent/runtime/cri/embedded/apparmor_test.go":           "few kernels have AppArmor enabled; make vm has one that does",
	"agent/runtime/cri/embedded/selinux_test.go":            "few kernels have a policy of SELinux loaded; make vm LSM=selinux has one that does",
	"agent/runtime/cri/embedded/selinux/relabel_test.go":    "labels of files need root",
	"agent/runtime/cri/embedded/images/store_test.go":       "owners and device nodes of unpacked files need root",
	"agent/runtime/cri/embedded/imagesocket/socket_test.go": "owners of unpacked files need root",
	"agent/runtime/cri/embedded/boot/become_test.go":        "a root directory of its own needs root",
	"agent/runtime/cri/embedded/cgroup/group_test.go":       "cgroups need root",
	"agent/net/network/guard/guard_test.go":                 "network namespaces need root",
	"agent/net/network/probe/probe_test.go":                 "network namespaces need root",
	"agent/net/network/probe/beside_test.go":                "firewalls that people have: make beside",
	"agent/net/network/nft/conn_test.go":                    "network namespaces need root",
	"agent/net/network/network_test.go":                     "network namespaces need root; some kernels have no IPv6",
	"agent/net/network/sctp_test.go":                        "some kernels have no SCTP; make vm has one that does",
	"agent/net/network/wireguard/device_test.go":            "network namespaces need root",
	"agent/host/layers_bench_test.go":                       "owners of files need root",
	"agent/host/layers_test.go":                             "owners of files need root",
	"agent/net/hostfirewall/nodes_test.go":                  "network namespaces need root",
	"agent/net/hostfirewall/table_test.go":                  "network namespaces need root",
	"agent/net/policy/table/main_test.go":                   "network namespaces need root",
}

type sourceFile struct {
	path      string // slashes, relative to the root
	dir       string
	test      bool
	nested    bool // of a module of tests below the product's
	generated bool
	lines     int
	text      string
	syntax    *ast.File
	imports   []string
}

var fileSet = token.NewFileSet()

// sources reads every Go file once: those of the module, and those of the modules of tests below it.
var sources = sync.OnceValues(func() ([]*sourceFile, error) {
	var files []*sourceFile
	nested := map[string]bool{} // folders of other modules
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			nested[name] = nested[path.Dir(name)] || hasModule(name)
			return enterDir(name, entry)
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		file, err := parse(filepath.ToSlash(name))
		if err != nil {
			return err
		}
		file.nested = nested[path.Dir(name)]
		files = append(files, file)
		return nil
	})
	return files, err
})

func hasModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil && dir != "."
}

// enterDir skips what Go skips.
func enterDir(name string, entry fs.DirEntry) error {
	if name == "." {
		return nil
	}
	if base := entry.Name(); base[0] == '.' || base[0] == '_' || base == "testdata" || base == "bin" {
		return filepath.SkipDir
	}
	return nil
}

func parse(name string) (*sourceFile, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return parseText(name, text)
}

func parseText(name string, text []byte) (*sourceFile, error) {
	syntax, err := parser.ParseFile(fileSet, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	file := &sourceFile{
		path: name, dir: path.Dir(name), syntax: syntax,
		test:      strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(syntax),
		lines:     strings.Count(string(text), "\n"),
		text:      string(text),
	}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		file.imports = append(file.imports, imported)
	}
	return file, nil
}

// eachSource visits the files of the product's module.
func eachSource(t *testing.T, visit func(f *sourceFile)) {
	t.Helper()
	eachSourceOfAll(t, func(f *sourceFile) {
		if !f.nested {
			visit(f)
		}
	})
}

// eachSourceOfAll visits those of the modules of tests too: rules that concern no imports hold for them as well.
func eachSourceOfAll(t *testing.T, visit func(f *sourceFile)) {
	t.Helper()
	files, err := sources()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 100 {
		t.Fatalf("only %d files found: the tree was not read", len(files))
	}
	for _, f := range files {
		visit(f)
	}
}

func TestHouseLibraries(t *testing.T) {
	product, imported := requirements(t, "."), map[string]bool{}
	eachSource(t, func(f *sourceFile) {
		for _, path := range f.imports {
			imported[path] = true
		}
	})
	for _, rule := range libraryRules {
		used := map[string]bool{}
		for _, pattern := range rule.forbid {
			if !isImportable(pattern, product, imported) && neverRequired[pattern] == "" {
				t.Errorf("nothing that %s forbids can be imported any more: name what took its place, or delete it\n\twhose rule: %s", pattern, rule.why)
			}
		}
		eachSource(t, func(f *sourceFile) { checkLibraries(t, f, rule, used) })
		for _, pattern := range slices.Concat(rule.in, rule.except, rule.allow) {
			if !used[pattern] {
				t.Errorf("%s matches nothing\n\twhose rule: %s", pattern, rule.why)
			}
		}
	}
}

// neverRequired are patterns of modules that go.mod does not name, and why rules forbid them all the same.
var neverRequired = map[string]string{
	"k8s.io/kubernetes/...": "it could be required at any time, and is by modules of tests",
}

// isImportable reports whether a pattern names a package of the standard library that something imports, or packages of a module
// that go.mod requires.
func isImportable(pattern string, required map[string]string, imported map[string]bool) bool {
	name := strings.TrimSuffix(strings.TrimSuffix(pattern, "..."), "/")
	if name == "" {
		return true
	}
	if match("std", name) {
		return imported[name]
	}
	for library := range required {
		if library == name || strings.HasPrefix(library, name+"/") || strings.HasPrefix(name, library+"/") {
			return true
		}
	}
	return false
}

// checkLibraries notes in used which patterns of the rule the file matches.
func checkLibraries(t *testing.T, f *sourceFile, rule libraryRule, used map[string]bool) {
	t.Helper()
	matches := func(patterns []string, name string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			fits := match(pattern, name)
			used[pattern] = used[pattern] || fits
			return fits
		})
	}
	if f.test && !rule.tests || !matches(rule.in, f.dir) || matches(rule.except, f.dir) {
		return
	}
	for _, imported := range f.imports {
		if matchAny(rule.forbid, imported) && !matches(rule.allow, imported) {
			t.Errorf("%s imports %s\n\twhy not: %s", f.path, imported, rule.why)
		}
	}
}

// Tests may reach further than the code they test, but not into another world.
func TestHouseTestImports(t *testing.T) {
	worlds := map[string][]string{
		"raftstore":   {"internal"},
		"apiserver":   {"raftstore", "internal"},
		"controllers": {"internal"},
		"agent":       {"internal"},
	}
	eachSource(t, func(f *sourceFile) {
		world, _, _ := strings.Cut(f.dir, "/")
		allowed, known := worlds[world]
		if !f.test || !known {
			return
		}
		for _, imported := range f.imports {
			below, ours := strings.CutPrefix(imported, module+"/")
			other, _, _ := strings.Cut(below, "/")
			if ours && other != world && !slices.Contains(allowed, other) {
				t.Errorf("%s imports %s\n\twhy not: what crosses worlds is tested in the root package, in cmd and in test/", f.path, imported)
			}
		}
	})
}

func TestHouseEveryPackageSaysWhatItIs(t *testing.T) {
	packages := map[string][]*sourceFile{}
	eachSource(t, func(f *sourceFile) {
		if !f.test && !f.generated {
			packages[f.dir] = append(packages[f.dir], f)
		}
	})
	for dir, files := range packages {
		name := files[0].syntax.Name.Name
		if !slices.ContainsFunc(files, func(f *sourceFile) bool { return documents(f, len(files) == 1) }) {
			t.Errorf("%s: package %s has no doc.go that begins with its name\n\twhy: a reader asks first what a package owns, who calls it, and what it promises", dir, name)
		}
		if slices.Contains([]string{"util", "utils", "common", "types", "misc", "helpers"}, name) {
			t.Errorf("%s: a package called %s\n\twhy not: the name says nothing, so everything ends up in it", dir, name)
		}
	}
}

// documents: a command is documented in main.go, the library in setpoint.go, since
// that is what people open, and a package of one file in that file.
func documents(f *sourceFile, alone bool) bool {
	if f.syntax.Doc == nil || !strings.HasPrefix(f.syntax.Doc.Text(), docStart(f)) {
		return false
	}
	switch base := path.Base(f.path); {
	case f.syntax.Name.Name == "main":
		return base == "main.go"
	case f.dir == ".":
		return base == "setpoint.go"
	default:
		return base == "doc.go" || alone
	}
}

func docStart(f *sourceFile) string {
	if f.syntax.Name.Name == "main" {
		return "Command " + path.Base(f.dir) + " "
	}
	return "Package " + f.syntax.Name.Name + " "
}

// generousPackages may have generousLinesMax lines, for the reason given.
var generousPackages = map[string]string{
	"agent/net/network": "the ways of pods, Services and tunnels share links, families and transactions",
	"raftstore":         "one type, Store, in front of everything; it is cut along what it owns, not by lines",
}

const generousLinesMax = 4300

func TestHouseSizes(t *testing.T) {
	packages, used := map[string]int{}, map[string]bool{}
	eachSourceOfAll(t, func(f *sourceFile) {
		if f.generated {
			return
		}
		tell(t, longFunctions(f, used))
		if f.test {
			return
		}
		packages[f.dir] += f.lines
		if f.lines > fileLinesMax {
			t.Errorf("%s has %d lines, more than %d\n\twhy: one concept a file; split it by who calls it", f.path, f.lines, fileLinesMax)
		}
	})
	for dir, lines := range packages {
		if lines <= packageLinesMax {
			continue
		}
		if used[dir] = true; generousPackages[dir] == "" || lines > generousLinesMax {
			t.Errorf("%s has %d lines, more than %d\n\twhy: a package is what one person can know", dir, lines, packageLinesMax)
		}
	}
	noLeftovers(t, "generousPackages", generousPackages, used)
	noLeftovers(t, "generousFunctions", generousFunctions, used)
}

// TestHouseColumns: product code fits beside its difference on a screen.
func TestHouseColumns(t *testing.T) {
	eachSource(t, func(f *sourceFile) {
		if f.test || f.generated {
			return
		}
		for i, line := range strings.Split(f.text, "\n") {
			if utf8.RuneCountInString(line) > columnsMax && !longText.MatchString(line) {
				t.Errorf("%s:%d has more than %d columns", f.path, i+1, columnsMax)
			}
		}
	})
}

// longFunctions notes in used which exceptions it has met.
func longFunctions(f *sourceFile, used map[string]bool) (found []string) {
	limit := functionLinesMax
	if f.test || f.nested {
		limit = testLinesMax
	}
	eachFunction(f, func(name string, lines int) {
		if lines <= limit {
			return
		}
		if used[f.path+":"+name] = true; generousFunctions[f.path+":"+name] == "" {
			found = append(found, fmt.Sprintf("%s: %s has %d lines, more than %d\n\twhy: the parent decides, leaves compute; nobody holds more in mind",
				f.path, name, lines, limit))
		}
	})
	return found
}

// eachFunction visits the declared functions, and those that a variable of the package has, by its name.
func eachFunction(f *sourceFile, visit func(name string, lines int)) {
	for _, declaration := range f.syntax.Decls {
		switch declared := declaration.(type) {
		case *ast.FuncDecl:
			visit(declared.Name.Name, linesOf(declared))
		case *ast.GenDecl:
			for _, spec := range declared.Specs {
				if variable, ok := spec.(*ast.ValueSpec); ok {
					eachLiteral(variable, func(literal *ast.FuncLit) { visit(variable.Names[0].Name, linesOf(literal)) })
				}
			}
		}
	}
}

func eachLiteral(in ast.Node, visit func(*ast.FuncLit)) {
	ast.Inspect(in, func(node ast.Node) bool {
		if literal, ok := node.(*ast.FuncLit); ok {
			visit(literal)
		}
		return true
	})
}

func linesOf(node ast.Node) int {
	return fileSet.Position(node.End()).Line - fileSet.Position(node.Pos()).Line + 1
}

// tell fails the test with each of the breaches.
func tell(t *testing.T, breaches []string) {
	t.Helper()
	for _, breach := range breaches {
		t.Error(breach)
	}
}

// TestHouseNamesSayWhereTheyAreFrom: with a dot import a rule, and a reader, cannot tell whose a function is.
func TestHouseNamesSayWhereTheyAreFrom(t *testing.T) {
	eachSourceOfAll(t, func(f *sourceFile) {
		if hasDotImport(f) {
			t.Errorf("%s has a dot import\n\twhy not: its names look like the package's own, also to the rules here", f.path)
		}
	})
}

func hasDotImport(f *sourceFile) bool {
	return slices.ContainsFunc(f.syntax.Imports, func(spec *ast.ImportSpec) bool { return spec.Name != nil && spec.Name.Name == "." })
}

// initFunctions are files that may have one, and why.
var initFunctions = map[string]string{
	"cmd/setpoint/translations/translations.go": "kubectl's hook must be set before kubectl's packages are initialised",
}

func TestHouseNothingHappensByImporting(t *testing.T) {
	used := map[string]bool{}
	eachSourceOfAll(t, func(f *sourceFile) {
		if f.generated {
			return
		}
		eachFunction(f, func(name string, _ int) {
			if name != "init" {
				return
			}
			if used[f.path] = true; initFunctions[f.path] == "" {
				t.Errorf("%s has an init function\n\twhy not: lists are plain slices that a reader can find, and importing costs nothing", f.path)
			}
		})
	})
	noLeftovers(t, "initFunctions", initFunctions, used)
}

// The state machine starts nothing: its order is the log's.
func TestHouseStateStartsNoGoroutine(t *testing.T) {
	eachSource(t, func(f *sourceFile) {
		if f.test || f.dir != "raftstore/state" {
			return
		}
		ast.Inspect(f.syntax, func(node ast.Node) bool {
			if _, starts := node.(*ast.GoStmt); starts {
				t.Errorf("%s: a goroutine\n\twhy not: the scheduler's order is not in the log, so replicas could differ", position(node))
			}
			return true
		})
	})
}

// A connection of the library itself says ENOBUFS about a transaction that the kernel took, from some 250 messages on.
func TestHouseOneWayToNftables(t *testing.T) {
	eachSource(t, func(f *sourceFile) {
		if f.test || f.dir == "agent/net/network/nft" || f.dir == "agent/net/network/networktest" {
			return
		}
		for _, at := range calls(f, "github.com/google/nftables", "New") {
			t.Errorf("%s: nftables.New\n\twhy not: agent/net/network/nft knows how large a transaction may be, and what became of it", at)
		}
	})
}

// In a bubble time passes only when everything waits. A file that uses one may sleep; others of
// its package may be called in one, and say so.
func TestHouseTestsDoNotSleepAndHope(t *testing.T) {
	used := map[string]bool{}
	eachSourceOfAll(t, func(f *sourceFile) {
		if !f.test || slices.Contains(f.imports, "testing/synctest") {
			return
		}
		for _, at := range sleeps(f) {
			used[f.path] = true
			if realSleeps[f.path]+bubbleSleeps[f.path] == "" {
				t.Errorf("%s: a sleep in a test without a bubble\n\twhy not: too short on a slow machine, too long on every other; use testing/synctest, or wait for the event", at)
			}
		}
	})
	noLeftovers(t, "realSleeps", realSleeps, used)
	noLeftovers(t, "bubbleSleeps", bubbleSleeps, used)
}

func TestHouseNoTestIsSkipped(t *testing.T) {
	used := map[string]bool{}
	eachSourceOfAll(t, func(f *sourceFile) {
		for _, at := range skips(f) {
			used[f.path] = true
			if allowedSkips[f.path] == "" {
				t.Errorf("%s: a skipped test\n\twhy not: it looks like a passed one; make it run, or write its reason into allowedSkips", at)
			}
		}
	})
	noLeftovers(t, "allowedSkips", allowedSkips, used)
}

// skips finds calls that end a test as skipped, whatever they are called on, and the functions as values. A helper of tests may stand in
// product code.
func skips(f *sourceFile) (found []string) {
	called := map[ast.Node]bool{}
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		if call, ok := node.(*ast.CallExpr); ok {
			called[call.Fun] = true
		}
		selector, ok := node.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, selector.Sel.Name) {
			return true
		}
		receiver, _ := selector.X.(*ast.Ident)
		if called[selector] || selector.Sel.Name != "Skip" || receiver != nil && slices.Contains([]string{"t", "tb", "b"}, receiver.Name) {
			found = append(found, position(selector))
		}
		return true
	})
	return found
}

// testTags are the build tags of test files, and the file by which a command sets each: a test behind a tag that nobody sets never runs.
var testTags = map[string]string{
	"compose": "test/compose.sh", "conformance": "test/conformance/run.sh", "mutants": "Makefile", "race": "test/run.sh",
	"ordered": "test/simulation/replicas/ordered/main.go", "versions": "test/versions.sh",
}

var tagName = regexp.MustCompile(`\w+`)

func TestHouseNoTestIsBehindATagThatNobodySets(t *testing.T) {
	used := map[string]bool{}
	eachSourceOfAll(t, func(f *sourceFile) {
		for _, tag := range tagsOf(f) {
			used[tag] = true
		}
		for _, tag := range unknownTags(f) {
			t.Errorf("%s is behind the build tag %s\n\twhy not: it looks like a test and never runs; write into testTags which command sets the tag", f.path, tag)
		}
	})
	for tag, file := range testTags {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), tag) {
			t.Errorf("testTags: %s does not set %s (%v)", file, tag, err)
		}
	}
	noLeftovers(t, "testTags", testTags, used)
}

// unknownTags are the build tags of a test file that testTags lacks. Systems and processors are no such tags.
func unknownTags(f *sourceFile) (unknown []string) {
	for _, tag := range tagsOf(f) {
		if testTags[tag] == "" && !slices.Contains([]string{"linux", "darwin", "unix", "amd64", "arm64"}, tag) {
			unknown = append(unknown, tag)
		}
	}
	return unknown
}

// tagsOf are the build tags of a test file.
func tagsOf(f *sourceFile) (tags []string) {
	if !f.test {
		return nil
	}
	for line := range strings.Lines(f.text) {
		if strings.HasPrefix(line, "package ") {
			return tags
		}
		if condition, ok := strings.CutPrefix(line, "//go:build "); ok {
			tags = append(tags, tagName.FindAllString(condition, -1)...)
		}
	}
	return tags
}

// sleeps finds time.Sleep, and channels of timers that are waited for with nothing beside them.
func sleeps(f *sourceFile) []string {
	found, beside := calls(f, "time", "Sleep"), map[ast.Node]bool{}
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.SelectStmt:
			for _, clause := range n.Body.List {
				if wait, ok := clause.(*ast.CommClause).Comm.(*ast.ExprStmt); ok && len(n.Body.List) > 1 {
					beside[wait.X] = true
				}
			}
		case *ast.UnaryExpr:
			if n.Op == token.ARROW && !beside[n] && isTimer(f, n.X) {
				found = append(found, position(n))
			}
		}
		return true
	})
	return found
}

// isTimer: time.After(…), time.Tick(…), time.NewTimer(…).C.
func isTimer(f *sourceFile, channel ast.Expr) bool {
	if c, ok := channel.(*ast.SelectorExpr); ok && c.Sel.Name == "C" {
		channel = c.X
	}
	call, ok := channel.(*ast.CallExpr)
	if !ok {
		return false
	}
	selector, ok := call.Fun.(*ast.SelectorExpr)
	return ok && packageNamed(f, selector.X) == "time"
}

// calls finds uses of a name of a package, by its import path.
func calls(f *sourceFile, library, name string) (found []string) {
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		if selector, ok := node.(*ast.SelectorExpr); ok && selector.Sel.Name == name && packageNamed(f, selector.X) == library {
			found = append(found, position(selector))
		}
		return true
	})
	return found
}

// packageNamed is the import path of the package that an identifier stands for in a file, whatever it is called there.
func packageNamed(f *sourceFile, x ast.Expr) string {
	ident, ok := x.(*ast.Ident)
	if !ok {
		return ""
	}
	for i, spec := range f.syntax.Imports {
		if spec.Name != nil && spec.Name.Name == ident.Name || spec.Name == nil && path.Base(f.imports[i]) == ident.Name {
			return f.imports[i]
		}
	}
	return ""
}

// noLeftovers keeps lists of exceptions as short as they can be.
func noLeftovers(t *testing.T, list string, exceptions map[string]string, used map[string]bool) {
	t.Helper()
	for file := range exceptions {
		if !used[file] {
			t.Errorf("%s names %s, which needs no exception any more: delete the line", list, file)
		}
	}
}

func position(node ast.Node) string {
	at := fileSet.Position(node.Pos())
	return fmt.Sprintf("%s:%d", at.Filename, at.Line)
}

func matchAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return match(pattern, name) })
}

func match(pattern, name string) bool {
	if pattern == "..." {
		return true
	}
	if pattern == "std" {
		first, _, _ := strings.Cut(name, "/")
		return !strings.Contains(first, ".")
	}
	if prefix, ok := strings.CutSuffix(pattern, "/..."); ok {
		return name == prefix || strings.HasPrefix(name, prefix+"/")
	}
	return name == pattern
}

func TestHouseMatch(t *testing.T) {
	cases := []struct {
		pattern, name string
		want          bool
	}{
		{"...", "anything", true},
		{"std", "net/http", true},
		{"std", "golang.org/x/sys/unix", false},
		{"a/b/...", "a/b", true},
		{"a/b/...", "a/b/c", true},
		{"a/b/...", "a/bc", false},
		{"a/b", "a/b", true},
		{"a/b", "a/b/c", false},
	}
	for _, c := range cases {
		if got := match(c.pattern, c.name); got != c.want {
			t.Errorf("match(%q, %q) = %v, want %v", c.pattern, c.name, got, c.want)
		}
	}
}
