package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/test/together/program"
)

// run tests the packages and writes the events of go test -json. It reports whether all passed; after an error not all were run.
func run(out *lines, o options, patterns []string) (bool, error) {
	temporary, err := os.MkdirTemp("", "together-*")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(temporary) //nolint:errcheck // a folder for temporary files
	w, shared, rest, err := plan(temporary, o.race, patterns)
	if err != nil {
		return false, err
	}
	var alone sync.WaitGroup
	aloneOK, aloneErr := true, error(nil)
	if len(rest) > 0 {
		alone.Go(func() { aloneOK, aloneErr = goTest(out, o, rest) })
	}
	ok, err := w.together(out, o, shared)
	alone.Wait()
	err = errors.Join(err, aloneErr)
	return err == nil && ok && aloneOK, err
}

// plan divides the packages into those that share programs and the rest.
func plan(temporary string, race, patterns []string) (w *writer, shared []*listed, rest []string, err error) {
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
	}
	all, err := list(race, name+"/...")
	if err != nil {
		return nil, nil, nil, err
	}
	candidates, err := list(race, patterns...)
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
func goTest(out *lines, o options, packages []string) (bool, error) {
	atOnce := fmt.Sprintf("-p=%d", max(1, o.atOnce-1))
	cmd := exec.Command("go", slices.Concat([]string{"test", "-json", atOnce}, o.goTest, packages)...)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	readErr := out.copyFrom(pipe)
	err = cmd.Wait()
	if failed, is := errors.AsType[*exec.ExitError](err); is && failed.ExitCode() == testsFailed {
		return false, readErr
	}
	return true, errors.Join(readErr, err)
}

// together builds the programs, and runs each package's tests as soon as theirs is there.
func (w *writer) together(out *lines, o options, shared []*listed) (ok bool, err error) {
	ok = true
	for _, p := range w.programs(shared) {
		file, err := w.write(p)
		if err != nil {
			return false, err
		}
		binary := filepath.Join(w.temporary, p.name)
		build := exec.Command("go", slices.Concat([]string{"build", "-overlay", file, "-o", binary}, o.linked(), []string{"./" + p.name})...)
		build.Dir, build.Stdout, build.Stderr = w.root, os.Stderr, os.Stderr
		if err := build.Run(); err != nil {
			return false, fmt.Errorf("linking the tests of %s: %w", p.name, err)
		}
		for _, tested := range p.packages {
			passed, err := w.test(out, o, binary, tested)
			if err != nil {
				return false, fmt.Errorf("the tests of %s: %w", tested.ImportPath, err)
			}
			ok = ok && passed
		}
	}
	return ok, nil
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
	ctx, cancel := context.WithTimeout(context.Background(), o.timeout+o.ioGrace)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.test2json, arguments...)
	cmd.Dir, cmd.Env = p.Dir, append(os.Environ(), program.PackageVariable+"="+p.ImportPath, "PWD="+p.Dir)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	end, readErr := out.copyEvents(pipe, func() { time.AfterFunc(o.ioGrace, cancel) })
	err = cmd.Wait()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		err = nil // as the last event says
	}
	if err := errors.Join(readErr, err); err != nil {
		return false, err
	}
	end.Package = p.ImportPath // there may have been no event at all
	return end.Action == "pass", out.end(end)
}
