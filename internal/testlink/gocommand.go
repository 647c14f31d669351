package testlink

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// buildLimit is how long the go command may take to build the binary, compiling and waiting for its turn included. It is shorter
	// than what go test gives a package, 10 minutes, so that the test can still say what it waited for.
	buildLimit = 9 * time.Minute
	// buildTries: the go command keeps what it built at the first try.
	buildTries = 2
	// outputPause is how long compilers may hold the output of a go command that was ended.
	outputPause = time.Second
	// memoryPrefix begins the names of files that remember what the go command said, for memoryAge: then it is asked again, so that its
	// cache sees that the binary is used, and keeps it.
	memoryPrefix = "tool-"
	memoryAge    = 24 * time.Hour
	// goLock is held by the process that asks the go command: several would build the same at once.
	goLock = "go.lock"
)

// tool is the binary of the test's module, "" if it has no such tool. Asking the go command takes a second, so the answer is remembered
// for a go.mod whose versions never change.
func (f Finder) tool(ctx context.Context) (string, error) {
	memory := f.memory()
	if path := remembered(memory); path != "" {
		return path, nil
	}
	unlock, err := f.turn(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	if path := remembered(memory); path != "" { // another test has asked meanwhile
		return path, nil
	}
	f.Say("the go command is asked for the tool setpoint of this module: it builds it if it has changed, which takes minutes once")
	path, err := f.goCommand(ctx, "tool", "-n", program)
	switch {
	case err == nil:
		if memory != "" {
			_ = os.WriteFile(memory, []byte(path), 0o600) // or the next test asks again
		}
		return path, nil
	case strings.Contains(err.Error(), "no such tool"), errors.Is(err, exec.ErrNotFound):
		return "", nil
	}
	return "", fmt.Errorf("go tool -n %s: %w: see that the command works in the module of the test, or name a binary with %s", program, err, BinaryVariable)
}

// build is the binary of the module's own command. The first try builds it and names a file that the go command takes away again; the
// next one names that in its cache.
func (f Finder) build(ctx context.Context) (path string, err error) {
	unlock, err := f.turn(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	f.Say("no setpoint of this version is a tool of this module or in PATH: the go command builds it, which takes minutes once")
	for range buildTries {
		path, err = f.goCommand(ctx, "run", "-exec", "echo", commandPath)
		if !errors.Is(err, errNoFile) {
			return path, err
		}
	}
	return "", err
}

// turn is this process's turn to ask the go command.
func (f Finder) turn(ctx context.Context) (unlock func(), err error) {
	unlock, err = lock(ctx, filepath.Join(f.Folder, goLock), buildLimit)
	if errors.Is(err, errHeld) || errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("another test has been building setpoint for %v: %s: %w", buildLimit, buildBefore, err)
	}
	return unlock, err
}

const buildBefore = "run go build " + commandPath + " before the tests, or name a binary with " + BinaryVariable

// remembered is the binary that the file remembers, "" if there is none, or it is time to ask again.
func remembered(memory string) string {
	if memory == "" || time.Since(changed(memory)) > memoryAge {
		return ""
	}
	path, err := os.ReadFile(memory)
	if err != nil || !isFile(string(path)) {
		return ""
	}
	return string(path)
}

// memory is the file that remembers the tool, "" if a local copy of the module may change.
func (f Finder) memory() string {
	here, err := os.Getwd()
	if err != nil {
		return ""
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		if isFile(filepath.Join(dir, "go.work")) {
			return ""
		}
		if text, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil {
			return f.memoryOf(text)
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
	}
}

func (f Finder) memoryOf(module []byte) string {
	if bytes.Contains(module, []byte("=>")) || bytes.Contains(module, []byte("module "+modulePath)) || os.Getenv("GOWORK") != "" {
		return ""
	}
	return filepath.Join(f.Folder, memoryPrefix+keyOf(string(module), os.Getenv("GOFLAGS"), os.Getenv("GOTOOLCHAIN")))
}

// errNoFile: the go command named a file that is not there.
var errNoFile = errors.New("which is no file")

// goCommand returns the one line that the go command prints: the path of a binary, which it builds before if need be.
func (f Finder) goCommand(ctx context.Context, args ...string) (string, error) {
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &problems, outputPause
	err := cmd.Run()
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "", fmt.Errorf("it has not ended within %v: %s", buildLimit, buildBefore)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, lastSentence(problems.String()))
	}
	path := strings.TrimSpace(out.String())
	if !isFile(path) {
		return "", fmt.Errorf("go %s printed %q, %w", strings.Join(args, " "), path, errNoFile)
	}
	return path, nil
}
