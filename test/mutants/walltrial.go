package mutants

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/opencontainers/cgroups"
	"github.com/opencontainers/cgroups/manager"
)

const (
	// buildLimit bounds the compilation of one product.
	buildLimit = 10 * time.Minute
	// pagesLimit bounds all pages with the product as it is; pageLimit one page with a mutant, whose pod may wait for two minutes.
	pagesLimit = 10 * time.Minute
	pageLimit  = 5 * time.Minute
)

// Files in the folder of tools.
const (
	productName  = "setpoint"
	pagesName    = "escape.test"
	attackerName = "attacker"
)

// tools are what a trial needs of the host, made before the cage closes: the pages, what attacks, and the product.
type tools struct {
	root, dir string
}

// newTools builds the pages and what attacks, in dir.
func newTools(ctx context.Context, root, dir string) (tools, error) {
	t := tools{root: root, dir: dir}
	return t, errors.Join(
		t.gobuild(ctx, "test", "-c", "-vet=off", "-o", filepath.Join(dir, pagesName), "./test/escape"),
		t.gobuild(ctx, "build", "-o", filepath.Join(dir, attackerName), "./test/escape/attacker"),
	)
}

// product builds the product into a folder of its own, with what all trials share.
func (t tools) product(ctx context.Context, dir string, changes []Change) (err error) {
	arguments := []string{"build", "-ldflags", "-s -w", "-o", filepath.Join(dir, productName)}
	if len(changes) > 0 {
		list, err := overlay(t.root, dir, changes)
		if err != nil {
			return err
		}
		arguments = append(arguments, "-overlay", list)
	}
	for _, name := range []string{pagesName, attackerName} {
		err = errors.Join(err, os.Link(filepath.Join(t.dir, name), filepath.Join(dir, name)))
	}
	return errors.Join(err, t.gobuild(ctx, append(arguments, "./cmd/setpoint")...))
}

func (t tools) gobuild(ctx context.Context, arguments ...string) error {
	ctx, cancel := context.WithTimeout(ctx, buildLimit)
	defer cancel()
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir, command.Env = t.root, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("not built: %w\n%s", err, output)
	}
	return nil
}

// passes runs the pages with the product in dir, as it is. A page that fails without a mutant proves nothing.
func (t tools) passes(ctx context.Context, dir string, pages []string) error {
	ctx, cancel := context.WithTimeout(ctx, pagesLimit)
	defer cancel()
	return t.attack(ctx, dir, pages)
}

// try runs the wall's page with the product in dir, which has the mutant. An error means that nothing was found out.
func (w Wall) try(ctx context.Context, t tools, dir string) (Verdict, error) {
	ctx, cancel := context.WithTimeout(ctx, pageLimit)
	defer cancel()
	start := time.Now()
	err := t.attack(ctx, dir, []string{w.Page})
	if failed, ok := errors.AsType[*pageError](err); ok && failed.page == w.Page {
		return Verdict{CaughtBy: failed.page + ":" + failed.line, Why: failed.why, Took: time.Since(start)}, nil
	}
	return Verdict{Took: time.Since(start)}, err
}

// pageError is an attack that succeeded, or a page that is wrong.
type pageError struct{ page, line, why string }

func (e *pageError) Error() string { return e.page + ".txtar:" + e.line + ": " + e.why }

// failedPage is testscript's line about the first command of a page that failed.
var failedPage = regexp.MustCompile(`(?m)FAIL: testdata/(\S+)\.txtar:(\d+): (.*)$`)

// attack runs pages in a cage. What they have changed of the kernel is set back.
func (t tools) attack(ctx context.Context, dir string, pages []string) error {
	before, err := readSettings()
	if err != nil {
		return err
	}
	output, err := t.inCage(ctx, dir, []string{
		filepath.Join(cageTools, pagesName), "-test.v", "-test.run", "^TestEscapes$/^(" + strings.Join(pages, "|") + ")$",
	})
	changed, failed := before.restore()
	if failed != nil {
		return failed
	}
	found := failedPage.FindSubmatch(output)
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("hung: %w\n%s", ctx.Err(), output)
	case err != nil && found != nil:
		return &pageError{page: string(found[1]), line: string(found[2]), why: string(found[3])}
	case err != nil:
		return fmt.Errorf("not run: %w\n%s", err, output)
	case len(changed) > 0:
		return fmt.Errorf("passed, and changed %s", strings.Join(changed, ", "))
	case bytes.Count(output, []byte("--- PASS: TestEscapes/")) != len(pages):
		return fmt.Errorf("not all of %d pages ran:\n%s", len(pages), output)
	}
	return nil
}

// inCage runs a command in a cage of its own. All that it starts ends with it.
func (t tools) inCage(ctx context.Context, dir string, command []string) (output []byte, err error) {
	outside, err := namespaces()
	if err != nil {
		return nil, err
	}
	// Not named as the agents' groups are: another agent may take those of nodes that are gone away.
	name := fmt.Sprintf("/cage-%d-%d", os.Getpid(), time.Now().UnixNano())
	group, err := manager.New(&cgroups.Cgroup{Path: name, Resources: &cgroups.Resources{}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, group.Destroy()) }() // its processes are gone with their PID namespace
	if err := group.Apply(-1); err != nil {
		return nil, err
	}
	r := request{tools: dir, pages: filepath.Join(t.root, "test/escape/testdata"), groups: slices.Collect(maps.Values(group.GetPaths())), command: command}
	cage := exec.CommandContext(ctx, "/proc/self/exe", r.arguments()...)
	cage.Env = append(cageEnvironment(), cageEnv+"="+strings.Join(outside, " "))
	cage.SysProcAttr = &syscall.SysProcAttr{Cloneflags: cageNamespaces, Pdeathsig: syscall.SIGKILL}
	return cage.CombinedOutput()
}

// cageEnvironment has nothing that leads back, and no secret.
func cageEnvironment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/tmp", "TMPDIR=/tmp",
		"SETPOINT_TEST_BINARY=" + filepath.Join(cageTools, productName),
		"SETPOINT_TEST_ATTACKER=" + filepath.Join(cageTools, attackerName),
	}
}

// pagesOf are the pages of walls, each once.
func pagesOf(walls []Wall) []string {
	var pages []string
	for _, w := range walls {
		pages = append(pages, w.Page)
	}
	slices.Sort(pages)
	return slices.Compact(pages)
}
