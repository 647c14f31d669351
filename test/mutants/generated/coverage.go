package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// cleanLimit bounds the tests of one package without a mutant, with their compilation.
const cleanLimit = 15 * time.Minute

// Clean is what the tests of one package do without a mutant.
type Clean struct {
	Seconds float64
	// blocks are the lines that ran, by file as the compiler names it: package/file.
	blocks map[string][]block
}

// block is some code of a file; ran says whether the tests came there.
type block struct {
	from, to place
	ran      bool
}

// place is a line and a column in bytes, from 1.
type place struct{ line, column int }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.line, q.line), cmp.Compare(p.column, q.column))
}

// Runs says whether the tests come to a place. What is in no block counts as run: declarations outside of functions, and
// conditions of cases.
func (c *Clean) Runs(m *Mutant) bool {
	inside := false
	for _, b := range c.blocks[path.Join(m.Package.Path, filepath.Base(m.File.Path))] {
		if b.from.compare(m.place) <= 0 && m.place.compare(b.to) < 0 {
			if b.ran {
				return true
			}
			inside = true
		}
	}
	return !inside
}

// Measure runs the tests of a package, which must pass, and notes which lines of the changed packages they come to.
func Measure(ctx context.Context, root, dir string, judge *Package, changed []*Package) (*Clean, error) {
	ctx, cancel := context.WithTimeout(ctx, cleanLimit)
	defer cancel()
	paths := make([]string, 0, len(changed))
	for _, p := range changed {
		paths = append(paths, p.Path)
	}
	profile := filepath.Join(dir, "profile")
	output, err := goTest(ctx, root, dir, "-coverpkg="+strings.Join(paths, ","), "-coverprofile="+profile, judge.Path)
	if err != nil {
		return nil, fmt.Errorf("%s does not pass without a mutant: %w\n%s", judge.Name, err, output)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	blocks, err := readProfile(text)
	return &Clean{Seconds: secondsIn(output), blocks: blocks}, err
}

// goTest runs tests in their short form. What they leave in dir goes with it.
func goTest(ctx context.Context, root, dir string, arguments ...string) ([]byte, error) {
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-count=1", "-short", "-failfast", "-v", "-vet=off"}, arguments...)...)
	command.Dir, command.Env = root, append(environment(), "TMPDIR="+dir)
	// go passes it on to the tests, and waits for them.
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = interruptLimit
	return command.CombinedOutput()
}

// interruptLimit is how long go has to end when it is interrupted.
const interruptLimit = 10 * time.Second

var passed = regexp.MustCompile(`(?m)^ok\s+\S+\s+([\d.]+)s`)

// secondsIn is how long the tests took, without their compilation.
func secondsIn(output []byte) float64 {
	found := passed.FindSubmatch(output)
	if found == nil {
		return 0
	}
	seconds, _ := strconv.ParseFloat(string(found[1]), 64)
	return seconds
}

// readProfile reads lines such as package/file.go:12.30,14.2 1 0.
func readProfile(text []byte) (map[string][]block, error) {
	blocks := map[string][]block{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		file, rest, found := strings.Cut(lines.Text(), ":")
		if !found || file == "mode" {
			continue
		}
		var b block
		var statements, count int
		values := []any{&b.from.line, &b.from.column, &b.to.line, &b.to.column, &statements, &count}
		if _, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", values...); err != nil {
			return nil, fmt.Errorf("cover profile: %q: %w", lines.Text(), err)
		}
		b.ran = count > 0
		blocks[file] = append(blocks[file], b)
	}
	return blocks, nil
}
