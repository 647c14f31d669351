package main

import (
	"bytes"
	"errors"
	"os"
)

var errNoPackageClause = errors.New("the generated source has no package clause of the expected name")

// asProgram renames the package of generated source to main.
func asProgram(path string) error {
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	clause := []byte("\npackage " + scratch + "\n")
	if !bytes.Contains(source, clause) {
		return errNoPackageClause
	}
	return os.WriteFile(path, bytes.Replace(source, clause, []byte("\npackage main\n"), 1), 0o644)
}
