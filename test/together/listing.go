package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
)

// listed is a package as go list -json tells of it.
type listed struct {
	ImportPath, Name, Dir               string
	CgoFiles, TestGoFiles, XTestGoFiles []string
	TestEmbedFiles, XTestEmbedFiles     []string
	Imports, TestImports, XTestImports  []string
}

func (p *listed) tested() bool { return len(p.TestGoFiles)+len(p.XTestGoFiles) > 0 }

// list asks the go command, in the current folder. With -race there may be other files.
func list(race []string, packages ...string) ([]*listed, error) {
	cmd := exec.Command("go", slices.Concat([]string{"list", "-json=ImportPath,Name,Dir,CgoFiles,TestGoFiles,XTestGoFiles,TestEmbedFiles," +
		"XTestEmbedFiles,Imports,TestImports,XTestImports"}, race, packages)...)
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []*listed
	for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
		p := &listed{}
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// separate matches in test files what must have a program of its own: a function that runs before or around all tests, flags (two of
// one name end a program), examples, seeds of fuzzing in a folder, and the question which program or file this is.
var separate = regexp.MustCompile(`(?m)^func (TestMain|init|Example\w*)\(|\bflag\.|\bos\.(Executable|Args)\b|runtime\.Caller\(|testdata/fuzz|^//go:embed|^//go:linkname`)

// mayShare reports whether a package's tests can be linked with others.
func (p *listed) mayShare() (bool, error) {
	if !p.tested() || p.Name == "main" || len(p.CgoFiles)+len(p.TestEmbedFiles)+len(p.XTestEmbedFiles) > 0 {
		return false, nil
	}
	if _, err := os.Stat(filepath.Join(p.Dir, "testdata", "fuzz")); err == nil {
		return false, nil
	}
	for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return false, err
		}
		if separate.Match(text) {
			return false, nil
		}
	}
	return true, nil
}
