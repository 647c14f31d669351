package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"
)

// walkTimeout bounds all commands of one section together.
const walkTimeout = 5 * time.Minute

// kubectlVariable is the path of a kubectl to walk with, in place of the one built in.
const kubectlVariable = "SETPOINT_TEST_KUBECTL"

// recordEnd ends the output of one command.
const recordEnd = "\x1e"

var update = flag.Bool("update", false, "write into docs/walkthrough.md what is printed now, where it says something else")

// walk runs the console blocks of one section of a page in one bash, and compares what
// each command prints with what the page says. A line "..." stands for any lines; what
// differs from run to run is no difference (volatile).
func walk(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: walk PAGE HEADING")
	}
	text, err := os.ReadFile(args[0])
	ts.Check(err)
	lines := strings.Split(string(text), "\n")
	steps := consoleSteps(lines, "## "+args[1])
	if len(steps) == 0 {
		ts.Fatalf("walk: no commands below %q", args[1])
	}
	output := runSteps(ts, steps)
	failed := 0
	for i, s := range slices.Backward(steps) { // from the end: update moves what follows
		got := strings.Split(strings.TrimSuffix(output[i], "\n"), "\n")
		if output[i] == "" {
			got = nil
		}
		want := lines[s.from:s.to]
		if matches(steady(want), steady(got)) {
			continue
		}
		failed++
		ts.Logf("%s:%d: $ %s\n%s", args[0], s.from, s.command, cmp.Diff(steady(want), steady(got)))
		lines = slices.Replace(lines, s.from, s.to, got...)
	}
	if failed == 0 {
		return
	}
	if !*update {
		ts.Fatalf("walk: %d commands print something else than the page says: read why, then -update", failed)
	}
	ts.Check(os.WriteFile(args[0], []byte(strings.Join(lines, "\n")), 0o644))
}

// step is one command of a page, and the lines with its output.
type step struct {
	command  string
	from, to int
}

// consoleSteps are the commands below a heading: lines that begin with "$ ", which go on
// with lines that begin with "> ". What follows until the next is their output.
func consoleSteps(lines []string, heading string) []step {
	var steps []step
	inside, console := false, false
	for i, line := range lines {
		switch {
		case strings.HasPrefix(line, "## "):
			inside = line == heading
		case strings.HasPrefix(line, "```"):
			console = inside && line == "```console"
		case !console:
		case strings.HasPrefix(line, "$ "):
			steps = append(steps, step{command: line[2:], from: i + 1, to: i + 1})
		case len(steps) > 0:
			last := &steps[len(steps)-1]
			if more, ok := strings.CutPrefix(line, "> "); ok && last.to == i && last.from == i {
				last.command += "\n" + more
				last.from++
			}
			last.to = i + 1
		}
	}
	return steps
}

// runSteps returns what each command printed.
func runSteps(ts *testscript.TestScript, steps []step) []string {
	var script strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&script, "%s\nprintf '\\x1e'\n", s.command)
	}
	ctx, cancel := context.WithTimeout(context.Background(), walkTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script.String())
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = append(os.Environ(), "HOME="+ts.Getenv("HOME"), "KUBECONFIG="+ts.Getenv("KUBECONFIG"), "PATH="+walkPath(ts))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	log, err := os.Create(ts.MkAbs("walk.log")) // a file: what is left behind keeps nobody waiting
	ts.Check(err)
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	failed := cmd.Run()
	_ = cmd.Cancel() // what was started and not ended
	all, err := os.ReadFile(log.Name())
	ts.Check(err)
	output := strings.Split(string(all), recordEnd)
	if len(output) <= len(steps) {
		ts.Fatalf("walk: ended (%v) at $ %s\n%s", failed, steps[len(output)-1].command, output[len(output)-1])
	}
	return output[:len(steps)]
}

// walkPath is PATH with a folder before it in which kubectl is; the samples are linked
// into the working folder, as in a clone.
func walkPath(ts *testscript.TestScript) string {
	samples, err := filepath.Abs(filepath.Join("..", "..", "deploy"))
	ts.Check(err)
	ts.Check(os.Symlink(samples, ts.MkAbs("deploy")))
	bin := ts.MkAbs(".bin")
	ts.Check(os.Mkdir(bin, 0o755))
	wrapper := "#!/bin/sh\nexec setpoint kubectl \"$@\"\n"
	if given := os.Getenv(kubectlVariable); given != "" {
		wrapper = "#!/bin/sh\nexec " + given + " \"$@\"\n"
	}
	ts.Check(os.WriteFile(filepath.Join(bin, "kubectl"), []byte(wrapper), 0o755))
	return bin + string(os.PathListSeparator) + ts.Getenv("PATH")
}

// matches compares line by line; "..." is any number of lines.
func matches(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "..." {
		for i := range len(got) + 1 {
			if matches(want[1:], got[i:]) {
				return true
			}
		}
		return false
	}
	return len(got) > 0 && want[0] == got[0] && matches(want[1:], got[1:])
}

// volatile is what differs from run to run, and what stands for it in a comparison.
var volatile = []struct {
	pattern *regexp.Regexp
	instead string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`), "TIME"},
	{regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`), "UID"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "SHA256"},
	// The hash of a template is a number below 2^32 in other letters: one of 400 has seven.
	{regexp.MustCompile(`-[bcdfghjklmnpqrstvwxz2456789]{6,10}\b`), "-HASH"},
	{regexp.MustCompile(`-HASH-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "-POD"}, // generated name
	{regexp.MustCompile(`\b(\d+(ms|[smhd]))+( ago)?\b`), "AGE"},
	{regexp.MustCompile(` \(x\d+ over AGE\)`), ""},
	{regexp.MustCompile(`\b10\.(42|96)\.\d+\.\d+\b`), "10.$1.x.x"},
	{regexp.MustCompile(`\b127\.0\.0\.1:\d+\b`), "127.0.0.1:PORT"},
	{regexp.MustCompile(`\bsim-\d\b`), "sim-N"},
	{regexp.MustCompile(`\+setpoint\.\d+\.\d+\.\d+`), "+setpoint.VERSION"},
	{regexp.MustCompile(`(resourceVersion"?: ?"?)\d+`), "${1}N"},
	{regexp.MustCompile(`[ \t]{2,}`), "  "},
	{regexp.MustCompile(`\s+$`), ""},
}

func steady(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		for _, v := range volatile {
			line = v.pattern.ReplaceAllString(line, v.instead)
		}
		out = append(out, line)
	}
	return out
}
