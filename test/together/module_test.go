package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// module has packages of each kind, by the files' names.
var module = map[string]string{
	"go.mod": "module example.com/m\n\ngo 1.26\n",
	// Inside and outside, a helper that only tests see, and each end that a test may have.
	"x/a/a.go":           "package a\n\nfunc hidden() int { return 1 }\n",
	"x/a/export_test.go": "package a\n\nvar Hidden = hidden\n",
	"x/a/in_test.go": `package a

import "testing"

func TestPasses(t *testing.T) { t.Run("below", func(t *testing.T) { if !testing.Testing() { t.Error("no test") } }) }
func TestFails(t *testing.T) { t.Run("below", func(t *testing.T) { t.Error("as it should") }) }
func TestSkips(t *testing.T) { t.Skip("as it should") }
func TestPart(t *testing.T) { if testing.Short() { t.Error("short") } }
func Testing() {}
func FuzzSeeds(f *testing.F) { f.Add(1); f.Fuzz(func(t *testing.T, n int) { if n != 1 { t.Error(n) } }) }
`,
	"x/a/out_linux_test.go": `package a_test

import ("os"; "testing"; "example.com/m/x/a")

func TestOutside(t *testing.T) {
	if _, err := os.Stat("a.go"); err != nil || a.Hidden() != 1 { t.Error(err) }
}
`,
	// Two whose tests import each other: together they are a circle.
	"x/c/c.go":      "package c\n",
	"x/c/c_test.go": "package c\n\nimport (\"testing\"; _ \"example.com/m/x/d\")\n\nfunc TestC(t *testing.T) {}\n",
	"x/d/d.go":      "package d\n",
	"x/d/d_test.go": "package d\n\nimport (\"testing\"; _ \"example.com/m/x/c\")\n\nfunc TestD(t *testing.T) {}\n",
	// What must have its own program.
	"main/main_test.go": "package main\n\nimport (\"os\"; \"testing\")\n\nfunc TestMain(m *testing.M) { os.Exit(m.Run()) }\n\nfunc TestM(t *testing.T) {}\n",
	"main/main.go":      "package main\n\nfunc main() {}\n",
	"none/none.go":      "package none\n",
	// Ends that are no test's.
	"x/ends/ends.go":       "package ends\n",
	"x/ends/ends_test.go":  "package ends\n\nimport (\"os\"; \"testing\")\n\nfunc TestEnds(t *testing.T) { os.Exit(0) }\n",
	"x/panic/panic.go":     "package panic\n",
	"x/panic/some_test.go": "package panic\n\nimport \"testing\"\n\nfunc TestPanics(t *testing.T) { panic(\"as it should\") }\n",
}

func writeModule(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Clean(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// ends are how the tests and packages of go test's events ended.
func ends(t *testing.T, events []byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range bytes.Lines(events) {
		var e struct{ Action, Package, Test string }
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch e.Action {
		case "pass", "fail", "skip":
			all[strings.TrimSpace(e.Package+" "+e.Test)] = e.Action
		}
	}
	return all
}

// TestEndsAsWithGoTest compares with go test itself.
func TestEndsAsWithGoTest(t *testing.T) {
	writeModule(t, module)
	want, _ := exec.Command("go", "test", "-json", "./...").Output() // it fails, as some tests should
	var got bytes.Buffer
	ok, err := run(&lines{out: &got}, options{atOnce: 2, timeout: timeoutUsual, ioGrace: ioGraceUsual}, []string{"./..."})
	if ok || err != nil {
		t.Fatalf("ok %v, %v", ok, err)
	}
	if got, want := ends(t, got.Bytes()), ends(t, want); !maps.Equal(got, want) || len(want) < 15 {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestWhoShares names the packages that are linked together.
func TestWhoShares(t *testing.T) {
	writeModule(t, module)
	_, shared, rest, err := plan(t.TempDir(), nil, []string{"./..."})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range shared {
		names = append(names, strings.TrimPrefix(p.ImportPath, "example.com/m/"))
	}
	if want := []string{"x/a", "x/c", "x/ends", "x/panic"}; !slices.Equal(names, want) {
		t.Errorf("together: %v, want %v", names, want)
	}
	if want := []string{"example.com/m/main", "example.com/m/none", "example.com/m/x/d"}; !slices.Equal(rest, want) {
		t.Errorf("by go test: %v, want %v", rest, want)
	}
}

// TestWhatDoesNotCompileIsAnError: nothing of it is taken for tested.
func TestWhatDoesNotCompileIsAnError(t *testing.T) {
	writeModule(t, map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n", "x/a/a.go": "package a\n",
		"x/a/a_test.go": "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) { undefined() }\n",
	})
	if ok, err := run(&lines{out: &bytes.Buffer{}}, options{}, []string{"./..."}); ok || err == nil {
		t.Errorf("ok %v, %v", ok, err)
	}
}

// TestAChildThatIsLeftFailsItsPackage, and nothing waits for it.
func TestAChildThatIsLeftFailsItsPackage(t *testing.T) {
	writeModule(t, map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26\n", "x/a/a.go": "package a\n", "x/b/b.go": "package b\n",
		"x/a/a_test.go": `package a

import ("os"; "os/exec"; "strconv"; "testing")

func TestA(t *testing.T) {
	child := exec.Command("sleep", "infinity")
	child.Stdout = os.Stdout
	if err := child.Start(); err != nil { t.Fatal(err) }
	if err := os.WriteFile("child", []byte(strconv.Itoa(child.Process.Pid)), 0o600); err != nil { t.Fatal(err) }
}
`,
		"x/b/b_test.go": "package b\n\nimport \"testing\"\n\nfunc TestB(t *testing.T) {}\n",
	})
	var got bytes.Buffer
	ok, err := run(&lines{out: &got}, options{timeout: timeoutUsual, ioGrace: time.Second}, []string{"./..."})
	text, readErr := os.ReadFile(filepath.Join("x", "a", "child"))
	if err := errors.Join(err, readErr); err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(string(text))
	if err != nil {
		t.Fatal(err)
	}
	_ = syscall.Kill(pid, syscall.SIGKILL)
	want := map[string]string{"example.com/m/x/a": "fail", "example.com/m/x/a TestA": "pass", "example.com/m/x/b": "pass", "example.com/m/x/b TestB": "pass"}
	if ended := ends(t, got.Bytes()); ok || !maps.Equal(ended, want) {
		t.Errorf("ok %v, %v", ok, ended)
	}
}

// TestFlags divides them: what goes to the compiler, to the program, and to go test.
func TestFlags(t *testing.T) {
	o, err := parse([]string{"-race", "-ldflags", "-s -w", "-count=1", "-vet=off", "-timeout", "30m", "-p", "3", "-exec", "env -u X", "-short"})
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2][]string{
		"build": {o.linked(), {"-race", "-ldflags=-X testing.testBinary=1 -s -w"}},
		"run":   {o.run, {"-test.count=1", "-test.timeout=30m", "-test.short"}},
		"exec":  {o.exec, {"env", "-u", "X"}},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s: %q, want %q", what, pair[0], pair[1])
		}
	}
	if o.atOnce != 3 || slices.ContainsFunc(o.goTest, func(flag string) bool { return strings.HasPrefix(flag, "-p") }) {
		t.Errorf("%+v", o)
	}
	if _, err := parse([]string{"-run", "X"}); err == nil {
		t.Error("a part of the tests is taken for all")
	}
}
