package mutants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"regexp"
	"time"
)

const (
	// checkLimit bounds one check with its compilation. A mutant that makes a test
	// hang is caught by it.
	checkLimit = 4 * time.Minute
	// testTimeout bounds the tests alone.
	testTimeout = 40 * time.Second
)

// Verdict is what became of one mutant.
type Verdict struct {
	// CaughtBy is package.Test, or page:line, or "" for a survivor.
	CaughtBy string
	// Why is what a page missed.
	Why  string
	Took time.Duration
}

var (
	failedTest  = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	runningTest = regexp.MustCompile(`(?m)^\s*running tests:\n\s*(\S+)`)
	panicked    = regexp.MustCompile(`(?m)^(?:panic|fatal error): `)
	// startedTest is the last resort for a panic outside a test's own goroutine.
	startedTest = regexp.MustCompile(`(?m)^=== RUN +(\S+)`)
	notBuilt    = regexp.MustCompile(`(?m)\[(?:build|setup) failed\]`)
)

// try runs the mutant's checks in turn, in dir, until one fails. An error means
// that the mutant itself is no good.
func (m Mutant) try(ctx context.Context, root, dir string) (Verdict, error) {
	start := time.Now()
	list, err := overlay(root, dir, m.changes())
	if err != nil {
		return Verdict{}, fmt.Errorf("mutant %s: %w", m.Name, err)
	}
	var v Verdict
	for _, c := range m.Checks {
		test, err := c.run(ctx, root, list)
		if err != nil {
			return Verdict{}, fmt.Errorf("mutant %s: %w", m.Name, err)
		}
		if test != "" {
			v.CaughtBy = path.Base(c.Package) + "." + test
			break
		}
	}
	v.Took = time.Since(start)
	return v, nil
}

// run returns the test that failed, or "" if all passed.
func (c Check) run(ctx context.Context, root, overlay string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, checkLimit)
	defer cancel()
	command := exec.CommandContext(ctx, "go", "test", "-count=1", "-failfast", "-v", "-vet=off",
		"-timeout", testTimeout.String(), "-overlay", overlay, "-run", c.Run, "./"+c.Package)
	command.Dir = root
	output, err := command.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case bytes.Contains(output, []byte("no tests to run")):
		return "", fmt.Errorf("no test of %s matches %s", c.Package, c.Run)
	case err == nil:
		return "", nil
	case notBuilt.Match(output) || !errors.As(err, &exit):
		return "", fmt.Errorf("not run: %w\n%s", err, output)
	}
	return Culprit(output), nil
}

// Culprit names the test that failed in the output of go test -v.
func Culprit(output []byte) string {
	if found := failedTest.FindSubmatch(output); found != nil {
		return string(found[1])
	}
	if found := runningTest.FindSubmatch(output); found != nil {
		return string(found[1]) + " (hung)"
	}
	if started := startedTest.FindAllSubmatch(output, -1); panicked.Match(output) && started != nil {
		return string(started[len(started)-1][1]) + " (panic)"
	}
	return "?"
}
