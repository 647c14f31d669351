package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Package is a package whose code is changed, or whose tests judge.
type Package struct {
	// Path is the import path, Name its end below the module, Dir its folder.
	Path, Name, Dir string
	// Imports are those of the code and of the tests, by path.
	Imports  []string
	HasTests bool
	// Files are the files of the code that people write.
	Files []*File
	// Types says what the expressions in Files are.
	Types types.Info
	// syntax are all files of the code, those of generators too.
	syntax []*ast.File
	tree   *Tree
}

// File is a file of the code.
type File struct {
	// Path is absolute.
	Path   string
	Text   []byte
	Syntax *ast.File
}

// Tree is what go list says of some packages.
type Tree struct {
	// Module is the path of the module, which is a prefix of its packages' paths.
	Module   string
	Files    *token.FileSet
	exported map[string]string
	importer types.Importer
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath, Dir, Export            string
	GoFiles, TestGoFiles, XTestGoFiles []string
	Imports, TestImports, XTestImports []string
	Module                             struct{ Path string }
}

// NewTree compiles what the patterns need, in root, so that their packages can be checked one by one.
func NewTree(root string, patterns ...string) (*Tree, error) {
	t := &Tree{Files: token.NewFileSet(), exported: map[string]string{}}
	all, err := list(root, append([]string{"-export", "-deps"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		t.exported[p.ImportPath] = p.Export
		t.Module = cmp.Or(p.Module.Path, t.Module) // dependencies come first
	}
	t.importer = importer.ForCompiler(t.Files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(t.exported[path]) })
	return t, nil
}

// Packages reads what the patterns name, without looking at the code.
func (t *Tree) Packages(root string, patterns ...string) (packages []*Package, err error) {
	all, err := list(root, patterns...)
	for _, l := range all {
		packages = append(packages, &Package{
			Path: l.ImportPath, Name: strings.TrimPrefix(l.ImportPath, t.Module+"/"), Dir: l.Dir, tree: t,
			Imports:  concat(l.Imports, l.TestImports, l.XTestImports),
			HasTests: len(l.TestGoFiles)+len(l.XTestGoFiles) > 0,
			Files:    filesOf(l),
		})
	}
	return packages, err
}

func filesOf(l listed) (files []*File) {
	for _, name := range l.GoFiles {
		files = append(files, &File{Path: filepath.Join(l.Dir, name)})
	}
	return files
}

// Read parses and checks the code.
func (p *Package) Read() error {
	var written []*File
	for _, f := range p.Files {
		if err := f.parse(p.tree.Files); err != nil {
			return err
		}
		p.syntax = append(p.syntax, f.Syntax)
		if !ast.IsGenerated(f.Syntax) {
			written = append(written, f)
		}
	}
	p.Files = written
	p.Types = types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	return p.check(p.syntax, &p.Types)
}

func (f *File) parse(files *token.FileSet) (err error) {
	if f.Text, err = os.ReadFile(f.Path); err != nil {
		return err
	}
	f.Syntax, err = parser.ParseFile(files, f.Path, f.Text, parser.ParseComments)
	return err
}

// Compiles is nil if the package compiles with that text of one file.
func (p *Package) Compiles(file *File, text []byte) error {
	changed, err := parser.ParseFile(p.tree.Files, file.Path, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	syntax := make([]*ast.File, 0, len(p.syntax))
	for _, s := range p.syntax {
		if s == file.Syntax {
			s = changed
		}
		syntax = append(syntax, s)
	}
	return p.check(syntax, nil)
}

func (p *Package) check(syntax []*ast.File, info *types.Info) error {
	config := types.Config{Importer: p.tree.importer, Sizes: types.SizesFor("gc", "amd64")}
	_, err := config.Check(p.Path, p.tree.Files, syntax, info)
	return err
}

func list(root string, arguments ...string) (all []listed, err error) {
	const fields = "-json=ImportPath,Dir,Export,GoFiles,TestGoFiles,XTestGoFiles,Imports,TestImports,XTestImports,Module"
	command := exec.Command("go", append([]string{"list", fields}, arguments...)...)
	command.Dir, command.Stderr, command.Env = root, os.Stderr, environment()
	output, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", strings.Join(arguments, " "), err)
	}
	for d := json.NewDecoder(bytes.NewReader(output)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		all = append(all, l)
	}
}

// environment is that of every go command: without cgo, as the product is built, whatever the caller has, so that all share
// what is in the build cache.
func environment() []string { return append(os.Environ(), "CGO_ENABLED=0") }

func concat(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
