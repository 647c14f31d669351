package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/setpoint-io/setpoint/test/together/program"
)

// run tests the packages and writes the events of go test -json. It reports whether all passed.
func run(out *lines, flags, patterns []string) (bool, error) {
	o, err := parse(flags)
	if err != nil {
		return false, err
	}
	temporary, err := os.MkdirTemp("", "together-*")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(temporary) //nolint:errcheck // a folder for temporary files
	w, shared, rest, err := plan(temporary, patterns)
	if err != nil {
		return false, err
	}
	var alone sync.WaitGroup
	failed := atomic.Bool{}
	if len(rest) > 0 {
		alone.Go(func() { failed.CompareAndSwap(false, !goTest(out, o, rest)) })
	}
	err = w.together(out, o, shared, &failed)
	alone.Wait()
	return err == nil && !failed.Load(), err
}

// plan divides the packages into those that share programs and the rest.
func plan(temporary string, patterns []string) (w *writer, shared []*listed, rest []string, err error) {
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Path}}\n{{.Dir}}").Output()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("go list -m: %w", err)
	}
	name, root, _ := strings.Cut(strings.TrimSpace(string(module)), "\n")
	converter, err := exec.Command("go", "tool", "-n", "test2json").Output()
	if err != nil {
		return nil, nil, nil, fmt.Errorf("go tool -n test2json: %w", err)
	}
	w = &writer{
		test2json: strings.TrimSpace(string(converter)), temporary: temporary, root: root, module: name,
		overlay: overlay{Replace: map[string]string{}},
	}
	all, err := list(name + "/...")
	if err != nil {
		return nil, nil, nil, err
	}
	candidates, err := list(patterns...)
	if err != nil {
		return nil, nil, nil, err
	}
	if shared, err = sharing(all, candidates); err != nil {
		return nil, nil, nil, err
	}
	for _, p := range candidates {
		if !slices.Contains(shared, p) {
			rest = append(rest, p.ImportPath)
		}
	}
	return w, shared, rest, nil
}

// goTest tests packages that share nothing.
func goTest(out *lines, o options, packages []string) bool {
	atOnce := fmt.Sprintf("-p=%d", max(1, o.atOnce-1))
	cmd := exec.Command("go", slices.Concat([]string{"test", "-json", atOnce}, o.goTest, packages)...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil || cmd.Start() != nil {
		return false
	}
	return errors.Join(out.copyFrom(pipe), cmd.Wait()) == nil
}

// together builds the programs, and runs each package's tests as soon as theirs is there.
func (w *writer) together(out *lines, o options, shared []*listed, failed *atomic.Bool) error {
	programs := w.programs(shared)
	for _, p := range programs {
		if err := w.write(p); err != nil {
			return err
		}
	}
	file, err := w.save()
	if err != nil {
		return err
	}
	for _, p := range programs {
		binary := filepath.Join(w.temporary, p.name)
		build := exec.Command("go", slices.Concat([]string{"build", "-overlay", file, "-o", binary}, o.linked(), []string{"./" + p.name})...)
		build.Dir, build.Stdout, build.Stderr = w.root, os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			return fmt.Errorf("linking the tests of %s: %w", p.name, err)
		}
		for _, tested := range p.packages {
			ok, err := w.test(out, o, binary, tested)
			if err != nil {
				return err
			}
			if !ok {
				failed.Store(true)
			}
		}
	}
	return nil
}

// linked are the flags for go build, which make package testing take the program for one of go test.
func (o options) linked() []string {
	flags := slices.DeleteFunc(slices.Clone(o.build), func(flag string) bool { return strings.HasPrefix(flag, "-ldflags=") })
	linker := "-ldflags=-X testing.testBinary=1"
	for _, flag := range o.build {
		if text, is := strings.CutPrefix(flag, "-ldflags="); is {
			linker += " " + text
		}
	}
	return append(flags, linker)
}

// test runs the tests of one package and writes their events.
func (w *writer) test(out *lines, o options, binary string, p *listed) (bool, error) {
	arguments := slices.Concat([]string{"-t", "-p", p.ImportPath}, o.exec, []string{binary, "-test.v=test2json", "-test.paniconexit0"}, o.run)
	cmd := exec.Command(w.test2json, arguments...)
	cmd.Dir, cmd.Env = p.Dir, append(os.Environ(), program.PackageVariable+"="+p.ImportPath, "PWD="+p.Dir)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	end, readErr := out.copyEvents(pipe)
	err = cmd.Wait()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		err = nil // as the last event says
	}
	if err := errors.Join(readErr, err); err != nil {
		return false, err
	}
	return end.Action == "pass", out.end(end)
}
