// Command again runs go test, and what failed again, alone.
//
//	go run ./test/again FLAGS OF GO TEST -- PACKAGES
//
// It prints what go test prints. Each test that failed is then run twice more, each time alone. One that passes
// both times does not fail the run: it is listed under "needed another run", with the line for test/chance.md. One that has a line
// there already does fail the run: it was seen before, and is mended first. What never is chance: a data race, a package that does
// not compile, and more than failuresMax failures at once.
//
// The variable TOGETHER names the program of test/together, which then runs the tests the first time.
//
// The variable NEEDED_ANOTHER_RUN names a file to which the tests that needed one are added, for the last lines of test/run.sh.
//
// Owned here: what counts as chance. Tested by tables of go test's events, and by a module whose tests fail once, always, or race.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// runsWanted is how often a test that failed must pass, alone.
	runsWanted = 2
	// failuresMax is how many tests of one call may have failed by chance: more have one cause.
	failuresMax = 10
	// neededVariable names the file that collects what needed another run.
	neededVariable = "NEEDED_ANOTHER_RUN"
	// testsFailed is how go test exits if tests failed or did not compile. With another code not all of them were run.
	testsFailed = 1
	// togetherVariable names what is run in the place of go test -json, the first time.
	togetherVariable = "TOGETHER"
	// chanceFile is where tests that needed another run are written down, below the root of the repository.
	chanceFile = "test/chance.md"
)

func main() {
	flags, packages, found := cut(os.Args[1:])
	if !found {
		fmt.Fprintln(os.Stderr, "usage: again FLAGS OF GO TEST -- PACKAGES")
		os.Exit(2)
	}
	known, err := readChance()
	if err != nil {
		fmt.Fprintln(os.Stderr, "again:", err)
		os.Exit(2)
	}
	a := again{out: os.Stdout, known: known, test: func(out io.Writer, more []string, packages ...string) (outcome, error) {
		if together := os.Getenv(togetherVariable); together != "" && more == nil {
			return follow(out, exec.Command(together, slices.Concat(flags, []string{"--"}, packages)...))
		}
		return follow(out, exec.Command("go", slices.Concat([]string{"test", "-json"}, flags, more, packages)...))
	}}
	needed, ok := a.run(packages)
	if err := keep(os.Getenv(neededVariable), needed); err != nil {
		fmt.Fprintln(os.Stderr, "again:", err)
		ok = false
	}
	if !ok {
		os.Exit(1)
	}
}

// cut separates flags from packages.
func cut(args []string) (flags, packages []string, found bool) {
	i := slices.Index(args, "--")
	if i < 0 || i == len(args)-1 {
		return nil, nil, false
	}
	return args[:i], args[i+1:], true
}

// follow runs a go test -json. It has failed if there is no error and the outcome is not ok.
func follow(out io.Writer, cmd *exec.Cmd) (outcome, error) {
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return outcome{}, err
	}
	if err := cmd.Start(); err != nil {
		return outcome{}, err
	}
	seen, readErr := read(bufio.NewReader(pipe), out)
	err = cmd.Wait()
	if failed, is := errors.AsType[*exec.ExitError](err); is && failed.ExitCode() == testsFailed {
		seen.exit, err = err.Error(), nil
	}
	return seen, errors.Join(readErr, err)
}

// keep adds the tests to the file, one a line; without a file it does nothing.
func keep(path string, needed []test) error {
	if path == "" || len(needed) == 0 {
		return nil
	}
	f, err := os.OpenFile(filepath.Clean(path), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	var lines strings.Builder
	for _, t := range needed {
		lines.WriteString(t.String() + "\n")
	}
	_, err = f.WriteString(lines.String())
	return errors.Join(err, f.Close())
}
