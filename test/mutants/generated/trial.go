package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/setpoint-io/setpoint/test/mutants"
)

const (
	// A mutant hangs if tests take hangFactor times what they take without it, and hangBase.
	hangFactor = 4
	hangBase   = 10 * time.Second
	// compileLimit is for what go does before and after the tests.
	compileLimit = 5 * time.Minute

	// A mutant may make a loop endless that takes memory or writes a file.
	addressSpaceBytes = 16 << 30
	fileBytes         = 2 << 30
)

// Outcome is what became of a mutant.
type Outcome string

// What may become of one.
const (
	Caught     Outcome = "caught"
	CaughtHang Outcome = "caught by time"
	Survived   Outcome = "SURVIVED"
	NotCovered Outcome = "NOT COVERED"
	NotBuilt   Outcome = "does not compile"
	Equivalent Outcome = "equivalent"
)

// Verdict is the outcome, and by whom or why.
type Verdict struct {
	Outcome Outcome
	// By is package.Test for one that is caught, the packages that did not see it, or a reason.
	By   string
	Took time.Duration
}

var (
	timedOut = regexp.MustCompile(`(?m)^panic: test timed out after`)
	notBuilt = regexp.MustCompile(`(?m)\[(?:build|setup) failed\]`)
)

// try runs the tests of the judges in turn, until one fails.
func try(ctx context.Context, root string, m *Mutant, judges []*Package, clean map[*Package]*Clean) (v Verdict, err error) {
	began := time.Now()
	defer func() { v.Took = time.Since(began) }()
	if err := m.Compiles(); err != nil {
		return Verdict{Outcome: NotBuilt, By: err.Error()}, nil
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return v, err
	}
	defer os.RemoveAll(dir)
	overlay, err := overlayOf(root, dir, m)
	if err != nil {
		return v, err
	}
	return judge(ctx, root, dir, overlay, judges, clean)
}

// overlayOf writes the mutant and go's list of what it replaces into dir, and returns the path of the list.
func overlayOf(root, dir string, m *Mutant) (string, error) {
	file, err := filepath.Rel(root, m.File.Path)
	if err != nil {
		return "", err
	}
	return mutants.Overlay(root, dir, map[string]string{file: string(m.Text())})
}

func judge(ctx context.Context, root, dir, overlay string, judges []*Package, clean map[*Package]*Clean) (Verdict, error) {
	v := Verdict{Outcome: NotCovered}
	for _, p := range judges {
		outcome, test, err := runTests(ctx, root, dir, overlay, p, hangLimit(clean[p].Seconds))
		switch {
		case err != nil:
			return v, err
		case outcome == NotBuilt:
			return Verdict{Outcome: outcome, By: test}, nil
		case outcome != Survived:
			return Verdict{Outcome: outcome, By: p.Name + "." + test}, nil
		}
		v.Outcome, v.By = Survived, v.By+" "+p.Name
	}
	return v, nil
}

func hangLimit(seconds float64) time.Duration {
	return hangBase + hangFactor*time.Duration(seconds*float64(time.Second))
}

// runTests is what one package says.
func runTests(ctx context.Context, root, dir, overlay string, p *Package, limit time.Duration) (Outcome, string, error) {
	bounded, cancel := context.WithTimeout(ctx, limit+compileLimit)
	defer cancel()
	output, err := goTest(bounded, root, dir, "-timeout", limit.String(), "-overlay", overlay, p.Path)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return Survived, "", nil
	case ctx.Err() != nil:
		return "", "", ctx.Err()
	case bounded.Err() != nil || timedOut.Match(output):
		return CaughtHang, mutants.Culprit(output), nil
	case notBuilt.Match(output):
		return NotBuilt, clip(bytes.TrimSpace(output)), nil
	case !errors.As(err, &exit):
		return "", "", fmt.Errorf("%w\n%s", err, output)
	}
	return Caught, mutants.Culprit(output), nil
}

// boundMutants bounds the memory of this process's children, and the size of the files that they write.
func boundMutants() error {
	return errors.Join(
		syscall.Setrlimit(syscall.RLIMIT_AS, &syscall.Rlimit{Cur: addressSpaceBytes, Max: addressSpaceBytes}),
		syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: fileBytes, Max: fileBytes}))
}
