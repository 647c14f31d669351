// Command openapigen writes models.json.gz, the OpenAPI models of the published
// Kubernetes types. `go generate` runs it in apiserver/discovery.
//
// The upstream generator can only write Go source, which would cost the product
// start-up time and a megabyte of code. So its output goes into a short-lived
// package, a program of three lines around it is run, and only the data is kept.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/setpoint-io/setpoint/apiserver/discovery/openapigen/dump"
)

const (
	// scratch is below the module, so that the program is built with its dependencies;
	// the underscore hides it from ./... and it is removed at the end.
	scratch    = "_models"
	scratchPkg = "github.com/setpoint-io/setpoint/apiserver/discovery/_models"
	output     = "models.json.gz"
)

const program = `package main

import (
	"log"

	"github.com/setpoint-io/setpoint/apiserver/discovery/openapigen/dump"
)

func main() {
	if err := dump.Write(%q, GetOpenAPIDefinitions); err != nil {
		log.Fatal(err)
	}
}
`

func main() {
	if err := generate(); err != nil {
		fmt.Fprintln(os.Stderr, "openapigen:", err)
		os.Exit(1)
	}
}

func generate() (err error) {
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return err
	}
	defer func() {
		if removeErr := os.RemoveAll(scratch); err == nil {
			err = removeErr
		}
	}()
	arguments := append([]string{
		"tool", "openapi-gen",
		"--output-dir", scratch, "--output-pkg", scratchPkg, "--output-file", "generated.go",
		"--report-filename", filepath.Join(scratch, "violations"),
	}, dump.Packages()...)
	if err := run("go", arguments...); err != nil {
		return err
	}
	if err := asProgram(filepath.Join(scratch, "generated.go")); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(scratch, "main.go"), fmt.Appendf(nil, program, output), 0o644); err != nil {
		return err
	}
	return run("go", "run", "./"+scratch)
}

func run(name string, arguments ...string) error {
	command := exec.Command(name, arguments...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, arguments[0], err)
	}
	return nil
}
