package testlink

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/setpoint-io/setpoint/internal/process"
)

const (
	// BinaryVariable names the binary of setpoint that tests use.
	BinaryVariable = "SETPOINT_TEST_BINARY"
	program        = "setpoint"
	commandPath    = modulePath + "/cmd/setpoint"
	modulePath     = "github.com/setpoint-io/setpoint"
	// versionLimit is how long a binary may take to say its version.
	versionLimit = 10 * time.Second
	// keyBytes of a hash name a binary: sockets have short paths.
	keyBytes  = 8
	keyLength = 2 * keyBytes
)

var errNoBinary = errors.New("there is no setpoint binary for tests: go mod edit -tool " + commandPath +
	" and go mod tidy in your module, put setpoint " + process.Version + " into PATH, or name one with " + BinaryVariable)

// Finder finds the binary. The zero Finder looks as tests do.
type Finder struct {
	// Folder is private, and remembers what the go command said.
	Folder string
	// Say tells the test what takes long.
	Say func(format string, args ...any)
}

// Binary returns the path of the binary: that of the environment, the go tool of the test's module, the one in PATH if it has the
// version of this package, or the one that the go command builds from the module.
func (f Finder) Binary(ctx context.Context) (path string, err error) {
	if path := os.Getenv(BinaryVariable); path != "" {
		return named(path)
	}
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	if path, err := f.tool(ctx); path != "" || err != nil {
		return path, err
	}
	unfit := f.unfitInPath(ctx)
	if unfit == nil {
		return exec.LookPath(program)
	}
	path, err = f.build(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %w; %w", errNoBinary, err, unfit)
	}
	return path, nil
}

// named is the binary of the environment: a path that is the same in the folder of each package, or a name in PATH.
func named(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s names %s, which cannot be run: build it, or unset the variable: %w", BinaryVariable, name, err)
	}
	if strings.ContainsRune(name, filepath.Separator) && !filepath.IsAbs(name) {
		return "", fmt.Errorf("%s names %s, which each package looks for in its own folder: give an absolute path, such as $PWD/%s", BinaryVariable, name, name)
	}
	return path, nil
}

// unfitInPath says why the binary in PATH, if there is one, is none for these tests.
func (f Finder) unfitInPath(ctx context.Context) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, versionLimit)
	defer cancel()
	text, err := exec.CommandContext(ctx, path, "version", "-o", "json").Output()
	if err != nil {
		return fmt.Errorf("%s version: %w", path, err)
	}
	var says struct {
		Setpoint string `json:"setpoint"`
	}
	if err := json.Unmarshal(text, &says); err != nil {
		return fmt.Errorf("%s version: %w", path, err)
	}
	if says.Setpoint != process.Version {
		return fmt.Errorf("%s is setpoint %s", path, says.Setpoint)
	}
	return nil
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

func isKey(text string) bool {
	_, err := hex.DecodeString(text)
	return err == nil && len(text) == keyLength
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// lastSentence is the last line that is not blank, with the one that it goes on with if it is indented.
func lastSentence(text string) string {
	lines := strings.Split(strings.TrimRightFunc(text, unicode.IsSpace), "\n")
	last := lines[len(lines)-1]
	if len(lines) > 1 && strings.HasPrefix(last, "\t") {
		last = lines[len(lines)-2] + " " + last
	}
	return strings.Join(strings.Fields(last), " ")
}
