package testlink

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	// BinaryVariable names the binary of setpoint that tests use.
	BinaryVariable = "SETPOINT_TEST_BINARY"
	program        = "setpoint"
	commandPath    = modulePath + "/cmd/setpoint"
	modulePath     = "github.com/setpoint-io/setpoint"
	// buildLimit is how long the go command may take to build the binary, compiling included.
	buildLimit = 20 * time.Minute
	// keyBytes of a hash name a binary: sockets have short paths.
	keyBytes = 8
)

var errNoBinary = errors.New("there is no setpoint binary for tests: go get -tool " + commandPath +
	" in your module, put setpoint into PATH, or name one with " + BinaryVariable)

// Finder finds the binary. The zero Finder looks as tests do.
type Finder struct {
	// Folder is private, and remembers what the go command said.
	Folder string
	// Say tells the test what takes long.
	Say func(format string, args ...any)
}

// Binary returns the path of the binary: that of the environment, the go tool of the test's module, the one in PATH, or the one that the
// go command builds from the module.
func (f Finder) Binary(ctx context.Context) (path string, err error) {
	if path := os.Getenv(BinaryVariable); path != "" {
		if _, err := exec.LookPath(path); err != nil {
			return "", fmt.Errorf("%s names %s, which cannot be run: build it, or unset the variable: %w", BinaryVariable, path, err)
		}
		return filepath.Abs(path)
	}
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	if path, err := f.tool(ctx); path != "" || err != nil {
		return path, err
	}
	if path, err := exec.LookPath(program); err == nil {
		return filepath.Abs(path)
	}
	f.Say("no setpoint is a tool of this module or in PATH: the go command builds it, which takes minutes once")
	path, err = f.goCommand(ctx, "run", "-exec", "echo", commandPath)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoBinary, err)
	}
	return path, nil
}

// tool is the binary of the test's module, "" if it has no such tool. Asking the go command takes a second, so the answer is remembered
// for a go.mod whose versions never change.
func (f Finder) tool(ctx context.Context) (string, error) {
	remembered := f.memory()
	if remembered != "" {
		if path, err := os.ReadFile(remembered); err == nil && isFile(string(path)) {
			return string(path), nil
		}
	}
	path, err := f.goCommand(ctx, "tool", "-n", program)
	if err != nil {
		if strings.Contains(err.Error(), "no such tool") || errors.Is(err, exec.ErrNotFound) {
			return "", nil
		}
		return "", fmt.Errorf("go tool -n %s: %w", program, err)
	}
	if remembered != "" {
		return path, os.WriteFile(remembered, []byte(path), 0o600)
	}
	return path, nil
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
	return filepath.Join(f.Folder, "tool-"+keyOf(string(module), os.Getenv("GOFLAGS"), os.Getenv("GOTOOLCHAIN")))
}

// goCommand returns the one line that the go command prints: the path of a binary, which it builds before if need be.
func (f Finder) goCommand(ctx context.Context, args ...string) (string, error) {
	var out, problems bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%w: %s", err, lastLine(problems.String()))
	}
	path := strings.TrimSpace(out.String())
	if !isFile(path) {
		return "", fmt.Errorf("go %s printed %q, which is no file", strings.Join(args, " "), path)
	}
	return path, nil
}

// identity is a key of the file: another build has another one.
func identity(path string) (string, error) {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	return keyOf(path, fmt.Sprint(info.Size()), fmt.Sprint(info.ModTime().UnixNano())), nil
}

func keyOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:keyBytes])
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
