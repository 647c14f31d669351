// Command ordered runs the simulation of whole servers on a Go runtime that chooses nothing at random, so that one seed is one run, in
// a new process.
//
// It owns the changes to the runtime, which live in an overlay of the build: what select, timers of one instant and math/rand
// choose inside of a bubble comes from the seed, maps are walked from their beginning, and no goroutine is interrupted.
// Arguments are those of the test:
//
//	go run ./test/simulation/replicas/ordered -seed 7 -seeds 1 -steps /tmp/steps
//
// Promises: a Go whose runtime has other texts is refused, not half changed. Tested by running it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// change is a text of a file of the standard library, and what takes its place.
type change struct{ file, old, new string }

var changes = []change{
	{"runtime/rand.go", "\tmp := getg().m\n\tc := &mp.chacha8\n", "\tif x, ok := ordered(orderRand); ok {\n\t\treturn x\n\t}\n\tmp := getg().m\n\tc := &mp.chacha8\n"},
	{"runtime/select.go", "j := cheaprandn(uint32(norder + 1))", "j := orderedn(orderSelect, uint32(norder + 1))"},
	{"runtime/time.go", "t.rand = cheaprand()", "t.rand = orderedn(orderTimer, 1 << 31)"},
	{"runtime/proc.go", "func retake(now int64) uint32 {\n", "func retake(now int64) uint32 {\n\tif orders[0] != 0 {\n\t\treturn 0\n\t}\n"},
	{"runtime/alg.go", "\t\tkey[i] = bootstrapRand()", "\t\tkey[i] = uint64(i)*0x9e3779b97f4a7c15 + 1"},
	{"internal/runtime/maps/map.go", "m.seed = uintptr(rand())", "m.seed = 1"},
	{"internal/runtime/maps/table.go", "it.entryOffset = rand()", "it.entryOffset = 0"},
	{"internal/runtime/maps/table.go", "it.dirOffset = rand()", "it.dirOffset = 0"},
}

// order is a new file of the runtime.
const order = `package runtime

// orders are the states of three streams: of select, of timers at one instant, and of math/rand; 0 is none.
var orders [3]uint64

const (
	orderSelect = iota
	orderTimer
	orderRand
)

// SetOrder makes what the runtime chooses at random inside of bubbles the outcome of a seed, which is not 0; 0 ends it.
func SetOrder(seed uint64) {
	for i := range orders {
		orders[i] = seed * uint64(1+i)
	}
}

//go:nosplit
func ordered(stream int) (uint64, bool) {
	if orders[0] == 0 {
		return 0, false
	}
	gp := getg().m.curg
	if gp == nil || gp.bubble == nil {
		return 0, false
	}
	orders[stream] += 0x9e3779b97f4a7c15
	z := orders[stream]
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31), true
}

//go:nosplit
func orderedn(stream int, n uint32) uint32 {
	x, ok := ordered(stream)
	if !ok {
		return cheaprandn(n)
	}
	return uint32((uint64(uint32(x)) * uint64(n)) >> 32)
}
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	dir, err := os.MkdirTemp("", "ordered-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	list, err := overlay(dir)
	if err != nil {
		return err
	}
	binary := filepath.Join(dir, "replicas.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-tags", "ordered", "-overlay", list, "-o", binary, "./test/simulation/replicas")
	test := exec.Command(binary, append([]string{"-test.run", "TestReplicas", "-test.v"}, arguments...)...)
	for _, c := range []*exec.Cmd{build, test} {
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		if err := c.Run(); err != nil {
			return err
		}
	}
	return nil
}

// overlay writes the changed files, and returns the path of the list that go's -overlay reads. A text that is not there fails: this Go is
// another than the changes were written for.
func overlay(dir string) (string, error) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", err
	}
	library := filepath.Join(strings.TrimSpace(string(root)), "src")
	texts := map[string]string{}
	for _, c := range changes {
		path := filepath.Join(library, c.file)
		if texts[path] == "" {
			text, err := os.ReadFile(path)
			if err != nil {
				return "", err
			}
			texts[path] = string(text)
		}
		if !strings.Contains(texts[path], c.old) {
			return "", fmt.Errorf("%s of this Go has no %q", c.file, c.old)
		}
		texts[path] = strings.ReplaceAll(texts[path], c.old, c.new)
	}
	texts[filepath.Join(library, "runtime/order.go")] = order
	return write(dir, texts)
}

func write(dir string, texts map[string]string) (string, error) {
	replaced := map[string]string{}
	for path, text := range texts {
		replaced[path] = filepath.Join(dir, strings.ReplaceAll(path[1:], "/", "-"))
		if err := os.WriteFile(replaced[path], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, list, 0o600)
}
