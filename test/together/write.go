package main

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// programText is linked into each program, whichever module that is of.
//
//go:embed program/program.go
var programText []byte

// own begins the names of files and folders that only the compiler sees.
const own = "together_"

// overlay is what go build -overlay reads: where the text is of files that are in no folder.
type overlay struct{ Replace map[string]string }

// writer makes the programs' texts, in a temporary folder.
type writer struct {
	test2json string // the program that makes events of what tests print
	temporary string
	root      string // of the module
	module    string // its import path
}

// bundle is one main package, and the packages whose tests it holds.
type bundle struct {
	name     string
	packages []*listed
}

// programs groups packages by their tree, the first element of their path in the module.
func (w *writer) programs(packages []*listed) []bundle {
	trees := map[string][]*listed{}
	for _, p := range packages {
		tree, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, w.module), "/"), "/")
		trees[tree] = append(trees[tree], p)
	}
	var all []bundle
	for _, tree := range slices.Sorted(maps.Keys(trees)) {
		all = append(all, bundle{name: own + tree, packages: trees[tree]})
	}
	return all
}

// write makes the main package of a program and returns the overlay in which it and the tests of its packages are. Other packages are
// compiled as ever, so that programs share them.
func (w *writer) write(p bundle) (string, error) {
	seen := overlay{Replace: map[string]string{}}
	var imports, tables strings.Builder
	for i, tested := range p.packages {
		inside, err := w.functions(tested, tested.TestGoFiles, fmt.Sprintf("in%d", i))
		if err != nil {
			return "", err
		}
		outside, err := w.functions(tested, tested.XTestGoFiles, fmt.Sprintf("out%d", i))
		if err != nil {
			return "", err
		}
		if inside.any() {
			fmt.Fprintf(&imports, "\tin%d %q\n", i, tested.ImportPath)
		}
		if outside.any() {
			fmt.Fprintf(&imports, "\tout%d %q\n", i, path.Join(tested.ImportPath, own+"x"))
		}
		seen.show(tested)
		fmt.Fprintf(&tables, "\t\t%q: func() program.Tests {\n\t\t\treturn program.Tests{\n\t\t\t\tTests: []testing.InternalTest{%s},\n"+
			"\t\t\t\tFuzz: []testing.InternalFuzzTarget{%s},\n\t\t\t}\n\t\t},\n",
			tested.ImportPath, inside.tests+outside.tests, inside.fuzz+outside.fuzz)
	}
	seen.Replace[filepath.Join(w.root, own+"program", "program.go")] = filepath.Join(w.temporary, "program.go")
	if err := os.WriteFile(filepath.Join(w.temporary, "program.go"), programText, 0o600); err != nil {
		return "", err
	}
	text := fmt.Sprintf("package main\n\nimport (\n\t\"testing\"\n\n\t%q\n%s)\n\nvar _ testing.TB\n\nfunc main() {\n\tprogram.Main(map[string]func() program.Tests{\n%s\t})\n}\n",
		w.module+"/"+own+"program", imports.String(), tables.String())
	file := filepath.Join(w.temporary, p.name+".go")
	seen.Replace[filepath.Join(w.root, p.name, "main.go")] = file
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return "", err
	}
	return seen.save(filepath.Join(w.temporary, p.name+".json"))
}

// show lets the compiler see the test files as files of the package, those of the external tests as a package below it.
func (o overlay) show(p *listed) {
	for _, name := range p.TestGoFiles {
		o.Replace[filepath.Join(p.Dir, own+plain(name))] = filepath.Join(p.Dir, name)
	}
	for _, name := range p.XTestGoFiles {
		o.Replace[filepath.Join(p.Dir, own+"x", plain(name))] = filepath.Join(p.Dir, name)
	}
}

// plain is a name without what the go command reads in it: the listing has gone by that.
func plain(name string) string {
	return strings.ReplaceAll(strings.TrimSuffix(name, "_test.go"), "_", "-") + ".go"
}

// functions are elements of the tables of tests.
type functions struct{ tests, fuzz string }

func (f functions) any() bool { return f.tests+f.fuzz != "" }

var testName = regexp.MustCompile(`^(Test|Fuzz)($|[^a-z])`)

// functions finds the tests in files of a package that is imported under a name.
func (w *writer) functions(p *listed, files []string, imported string) (found functions, err error) {
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return functions{}, err
		}
		for _, declared := range file.Decls {
			f, is := declared.(*ast.FuncDecl)
			if !is || f.Recv != nil || !testName.MatchString(f.Name.Name) {
				continue
			}
			if strings.HasPrefix(f.Name.Name, "Fuzz") {
				found.fuzz += fmt.Sprintf("{Name: %q, Fn: %s.%s}, ", f.Name.Name, imported, f.Name.Name)
			} else {
				found.tests += fmt.Sprintf("{Name: %q, F: %s.%s}, ", f.Name.Name, imported, f.Name.Name)
			}
		}
	}
	return found, nil
}

// save writes the overlay and returns its file.
func (o overlay) save(file string) (string, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	return file, os.WriteFile(file, text, 0o600)
}
