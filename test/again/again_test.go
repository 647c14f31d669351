package main

import (
	"bufio"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// say is what go test -json prints of a package with these tests: "TestA", "!TestA" failed, "?TestA" skipped. It ends without the
// line that says that all were run if a name is "panic".
func say(pkg string, tests ...string) string {
	var b strings.Builder
	result, whole := "pass", true
	line := func(action, test, output string) {
		b.WriteString(`{"Action":"` + action + `","Package":"` + pkg + `"`)
		if test != "" {
			b.WriteString(`,"Test":"` + test + `"`)
		}
		if output != "" {
			b.WriteString(`,"Output":"` + output + `\n"`)
		}
		b.WriteString("}\n")
	}
	for _, name := range tests {
		name, failed := strings.CutPrefix(name, "!")
		name, skipped := strings.CutPrefix(name, "?")
		name, racy := strings.CutSuffix(name, " race")
		switch {
		case name == "panic":
			result, whole = "fail", false
			continue
		case racy:
			line("output", name, "WARNING: DATA RACE")
		}
		line("output", name, "said by "+name)
		switch {
		case failed:
			result = "fail"
			line("fail", name, "")
		case skipped:
			line("skip", name, "")
		default:
			line("pass", name, "")
		}
	}
	if result == "fail" && whole {
		line("output", "", "FAIL")
	}
	if len(tests) == 0 {
		line("output", "", `ok  \t`+pkg+` 0.1s [no tests to run]`)
	} else {
		line("output", "", result+" "+pkg)
	}
	line(result, "", "")
	return b.String()
}

func TestWhatIsChance(t *testing.T) {
	for name, c := range map[string]struct {
		runs   []string // of go test, one after the other
		known  string
		needed string
		ok     bool
	}{
		"all pass":                         {runs: []string{say("p", "TestA")}, ok: true},
		"passes twice alone":               {runs: []string{say("p", "!TestA", "TestB"), say("p", "TestA"), say("p", "TestA")}, needed: "p TestA", ok: true},
		"passes once only":                 {runs: []string{say("p", "!TestA"), say("p", "TestA"), say("p", "!TestA")}},
		"fails always":                     {runs: []string{say("p", "!TestA"), say("p", "!TestA")}},
		"a subtest, alone":                 {runs: []string{say("p", "!TestA/x", "!TestA"), say("p", "TestA/x", "TestA"), say("p", "TestA/x", "TestA")}, needed: "p TestA/x", ok: true},
		"is not found alone":               {runs: []string{say("p", "!TestA"), say("p")}},
		"is skipped alone":                 {runs: []string{say("p", "!TestA"), say("p", "?TestA")}},
		"a panic: the whole package again": {runs: []string{say("p", "!TestA", "panic"), say("p", "TestA", "TestB"), say("p", "TestA", "TestB")}, needed: "p", ok: true},
		"no test to run, whole package":    {runs: []string{say("p", "!TestA", "panic"), say("p")}},
		"a race is no chance":              {runs: []string{say("p", "!TestA race")}},
		"a race in one run of two":         {runs: []string{say("p", "!TestA"), say("p", "TestA"), say("p", "!TestA race")}},
		"seen before":                      {runs: []string{say("p", "!TestA/x", "!TestA")}, known: "| `p` | `TestA` | then | slow |"},
		"a panic, seen before":             {runs: []string{say("p", "!TestA", "panic")}, known: "| `p` | `TestA` | then | slow |"},
		"another's line":                   {runs: []string{say("p", "!TestA"), say("p", "TestA"), say("p", "TestA")}, known: "| `p` | `TestAB` | then | slow |", needed: "p TestA", ok: true},
		"two packages":                     {runs: []string{say("p", "!TestA") + say("q", "!TestB"), say("p", "TestA"), say("p", "TestA"), say("q", "!TestB")}, needed: "p TestA"},
		"too many":                         {runs: []string{say("p", "!TestA") + many(failuresMax)}},
	} {
		t.Run(name, func(t *testing.T) {
			runs := c.runs
			a := again{out: io.Discard, known: parseChance(c.known), test: func(out io.Writer, _ []string, _ ...string) (outcome, error) {
				if len(runs) == 0 {
					return outcome{}, errors.New("one run too many")
				}
				said := runs[0]
				runs = runs[1:]
				return read(bufio.NewReader(strings.NewReader(said)), out)
			}}
			needed, ok := a.run([]string{"p"})
			var got []string
			for _, n := range needed {
				got = append(got, n.String())
			}
			if strings.Join(got, ", ") != c.needed || ok != c.ok || len(runs) != 0 {
				t.Errorf("needed %q, ok %v, %d runs left; want %q, %v", got, ok, len(runs), c.needed, c.ok)
			}
		})
	}
}

// many are n packages with a failure each.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(say("p"+string(rune('a'+i)), "!TestX"))
	}
	return b.String()
}

func TestWhatIsPrinted(t *testing.T) {
	var out strings.Builder
	compiler := `{"ImportPath":"q","Action":"build-output","Output":"q.go:1: no\n"}` + "\n"
	if _, err := read(bufio.NewReader(strings.NewReader(say("p", "TestA", "!TestB")+say("o", "TestC")+compiler)), &out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "said by TestB\nFAIL\nfail p\npass o\nq.go:1: no\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPattern(t *testing.T) {
	for name, want := range map[string]string{"": ".", "TestA": "^TestA$", "TestA/b.c#01": `^TestA$/^b\.c#01$`} {
		if got := pattern(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	flags, packages, found := cut([]string{"-race", "--", "./..."})
	if !found || !slices.Equal(flags, []string{"-race"}) || !slices.Equal(packages, []string{"./..."}) {
		t.Errorf("%v %v %v", flags, packages, found)
	}
	for _, bad := range [][]string{nil, {"-race"}, {"-race", "--"}} {
		if _, _, found := cut(bad); found {
			t.Errorf("%v is taken", bad)
		}
	}
}

// TestNotAllWereRun: with another exit than that of tests that fail, something was not run, whatever was.
func TestNotAllWereRun(t *testing.T) {
	for code, wantErr := range map[string]bool{"0": false, "1": false, "2": true} {
		seen, err := follow(io.Discard, exec.Command("sh", "-c", "exit "+code))
		if (err != nil) != wantErr || (seen.exit != "") != (code == "1") {
			t.Errorf("exit %s: %v, %+v", code, err, seen)
		}
	}
}
