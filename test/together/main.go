// Command together runs go test -json, with the tests of many packages linked into few programs.
//
//	go run ./test/together FLAGS OF GO TEST -- PACKAGES
//
// A program of tests that holds most of Kubernetes' types takes seven seconds of processor time to link (controllers/deployment) to
// nineteen (server), and there are hundreds. Here the packages of one tree, such as controllers/, share a program. Their test files
// become files of the packages themselves, and a main function calls the tests of the one package that it is started for: go build
// -overlay shows the compiler files that are in no folder. Each package still runs in a process of its own, in its folder, with its
// own time limit, and the events are those of go test -json.
//
// Packages that cannot share (see separate) are tested by go test, beside the others. So is all that runs once more or in part:
// only whole runs of the tests come here.
//
// Flags that are understood: -count=1, -short, -timeout, -p, -race, -ldflags, -vet=off and -exec; others are refused.
//
// Owned here: which packages may share a program. Tested by a module with packages of each kind, whose events must be those of go test.
package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
)

// testsFailed is how go test exits, and this command, if tests failed or did not compile; with another code not all of them were run.
const testsFailed = 1

func main() {
	i := slices.Index(os.Args, "--")
	if i < 0 || i == len(os.Args)-1 {
		fmt.Fprintln(os.Stderr, "usage: together FLAGS OF GO TEST -- PACKAGES")
		os.Exit(2)
	}
	o, err := parse(os.Args[1:i])
	ok := false
	if err == nil {
		ok, err = run(&lines{out: os.Stdout}, o, os.Args[i+1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "together:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(testsFailed)
	}
}

// lines lets several write whole lines to one place.
type lines struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *lines) write(line []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = l.out.Write(line)
}
