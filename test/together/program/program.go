// Package program is the main function of programs that hold the tests of several packages: see test/together, which writes them.
//
// Promised: the tests of one package run as go test runs them. It stands in for testing/internal/testdeps, which only programs that the
// go command writes may import; what serves coverage, profiles and fuzzing is left out, for nobody asks a program of this kind for it.
// Tested by test/together.
package program

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"testing"
	"time"
)

// PackageVariable names the package whose tests are to run, by its import path.
const PackageVariable = "TOGETHER_PACKAGE"

// Tests are those of one package.
type Tests struct {
	Tests []testing.InternalTest
	Fuzz  []testing.InternalFuzzTarget
}

// Main runs the tests of the package that PackageVariable names, and ends the program.
func Main(packages map[string]func() Tests) {
	path := os.Getenv(PackageVariable)
	tests, found := packages[path]
	if !found {
		fmt.Fprintf(os.Stderr, "together: %s=%q is none of this program's packages\n", PackageVariable, path)
		os.Exit(2)
	}
	t := tests()
	os.Exit(testing.MainStart(dependencies(path), t.Tests, nil, t.Fuzz, nil).Run())
}

// dependencies is what package testing asks for, with the import path of the package under test.
type dependencies string

func (d dependencies) ImportPath() string { return string(d) }
func (dependencies) ModulePath() string   { return "" }
func (dependencies) MatchString(pattern, text string) (bool, error) {
	return regexp.MatchString(pattern, text)
}

var errNotHere = errors.New("only programs of go test do that")

func (dependencies) SetPanicOnExit0(bool)                        {}
func (dependencies) StartCPUProfile(io.Writer) error             { return errNotHere }
func (dependencies) StopCPUProfile()                             {}
func (dependencies) StartTestLog(io.Writer)                      {}
func (dependencies) StopTestLog() error                          { return nil }
func (dependencies) WriteProfileTo(string, io.Writer, int) error { return errNotHere }

// entry is an alias of what package testing calls a corpus entry.
type entry = struct {
	Parent     string
	Path       string
	Data       []byte
	Values     []any
	Generation int
	IsSeed     bool
}

func (dependencies) CoordinateFuzzing(time.Duration, int64, time.Duration, int64, int, []entry, []reflect.Type, string, string) error {
	return errNotHere
}
func (dependencies) RunFuzzWorker(func(entry) error) error              { return errNotHere }
func (dependencies) ReadCorpus(string, []reflect.Type) ([]entry, error) { return nil, nil }
func (dependencies) CheckCorpus([]any, []reflect.Type) error            { return nil }
func (dependencies) ResetCoverage()                                     {}
func (dependencies) SnapshotCoverage()                                  {}
func (dependencies) InitRuntimeCoverage() (mode string, tearDown func(string, string) (string, error), snapshot func() float64) {
	return "", nil, nil
}
