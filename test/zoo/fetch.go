package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// compileFlags leave out what debuggers read, and are otherwise the Makefile's, so that the build cache is shared.
const compileFlags = "-mod=mod -buildvcs=false -gcflags=all=-dwarf=false"

const ginkgo = "github.com/onsi/ginkgo/v2"

// fetch lays a copy of the recipe's module into dir, which must not exist: the module cache cannot be written to, and
// suites write beside their source. What the module proxy has as modules of their own comes into its folders.
func fetch(ctx context.Context, r recipe, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchLimit)
	defer cancel()
	for _, folder := range append([]string{"."}, r.nested...) {
		if err := lay(ctx, path.Join(r.module, folder)+"@"+r.version, ".", filepath.Join(dir, folder)); err != nil {
			return err
		}
	}
	for folder, source := range r.beside {
		module, within := moduleAndFolder(source)
		if err := lay(ctx, module, within, filepath.Join(dir, folder)); err != nil {
			return err
		}
	}
	return raise(ctx, r, dir)
}

// raise makes the recipe's module, in dir, ask for the modules that are raised.
func raise(ctx context.Context, r recipe, dir string) error {
	args := []string{"mod", "edit"}
	for _, module := range r.raised {
		if !strings.HasPrefix(module, r.module+"@") {
			args = append(args, "-require="+module)
		}
	}
	if len(r.raised) == 0 {
		return nil
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	if said, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("its go.mod cannot be raised: %s", oneLine(string(said)))
	}
	return nil
}

// moduleAndFolder splits "MODULE@VERSION/FOLDER", or "MODULE@VERSION", which is the module's root.
func moduleAndFolder(source string) (module, folder string) {
	at := strings.LastIndex(source, "@")
	version, folder, _ := strings.Cut(source[at+1:], "/")
	return source[:at+1] + version, path.Clean(folder)
}

// lay copies a folder within a module at a version into a folder.
func lay(ctx context.Context, module, within, folder string) error {
	cached, err := download(ctx, module)
	if err != nil {
		return err
	}
	return os.CopyFS(folder, os.DirFS(filepath.Join(cached, within)))
}

// download returns the folder in the module cache.
func download(ctx context.Context, module string) (string, error) {
	said, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", module).Output()
	var got struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(said, &got); jsonErr != nil {
		return "", errors.Join(err, ctx.Err(), jsonErr)
	}
	if got.Error != "" {
		return "", errors.New(oneLine(got.Error))
	}
	return got.Dir, nil
}

// compile makes the test program of one package.
func compile(ctx context.Context, r recipe, module, pkg, program string) error {
	ctx, cancel := context.WithTimeout(ctx, compileLimit)
	defer cancel()
	trim := "-trimpath=" + strconv.FormatBool(!r.ownPaths)
	said, err := goCommand(ctx, module,
		"test", trim, "-tags="+r.tags, "-vet=off", "-ldflags=-s -w", "-c", "-o", program, below(pkg)).CombinedOutput()
	if ctx.Err() != nil {
		return fmt.Errorf("compiling takes longer than %v", compileLimit)
	}
	if err != nil {
		return fmt.Errorf("does not compile: %s", oneLine(lastLines(string(said))))
	}
	if _, err := os.Stat(program); err != nil {
		return errors.New("has no tests")
	}
	return nil
}

// usesGinkgo says whether the package's tests know Ginkgo's flags.
func usesGinkgo(ctx context.Context, r recipe, module, pkg string) (bool, error) {
	said, err := goCommand(ctx, module, "list", "-tags="+r.tags, "-test", "-deps", below(pkg)).Output()
	return slices.Contains(strings.Fields(string(said)), ginkgo), err
}

func goCommand(ctx context.Context, module string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOFLAGS="+compileFlags, "GOWORK=off")
	return cmd
}

func below(pkg string) string { return "./" + filepath.ToSlash(filepath.Clean(pkg)) }

// lastLines are the lines that tell what is wrong; what is downloaded comes before.
func lastLines(said string) string {
	var told []string
	for line := range strings.Lines(said) {
		if !strings.HasPrefix(line, "go: downloading ") {
			told = append(told, line)
		}
	}
	return strings.Join(told, "")
}

// lineMax bounds what is told of a failure, in bytes.
const lineMax = 200

func oneLine(text string) string {
	line := strings.Join(strings.Fields(text), " ")
	if len(line) > lineMax {
		return strings.ToValidUTF8(line[:lineMax], "") + "…"
	}
	return line
}
