package surface

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// source is a folder of upstream's by its import path, in the versions of this module.
func source(t *testing.T, importPath string) string {
	t.Helper()
	module := strings.Join(strings.SplitN(importPath, "/", 3)[:2], "/")
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", module).Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), strings.TrimPrefix(importPath, module))
}

// parsed is a Go file of upstream's.
func parsed(t *testing.T, file string) *ast.File {
	t.Helper()
	tree, err := parser.ParseFile(token.NewFileSet(), filepath.Join(source(t, path.Dir(file)), path.Base(file)), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

// constant is the value of a string constant of one of upstream's packages.
func constant(t *testing.T, importPath, name string) string {
	t.Helper()
	noTests := func(info fs.FileInfo) bool { return !strings.HasSuffix(info.Name(), "_test.go") }
	packages, err := parser.ParseDir(token.NewFileSet(), source(t, importPath), noTests, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var value string
	for _, p := range packages {
		ast.Inspect(p, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && spec.Names[0].Name == name && len(spec.Values) == 1 {
				value = unquoted(spec.Values[0])
			}
			return true
		})
	}
	if value == "" {
		t.Fatalf("%s has no constant %s", importPath, name)
	}
	return value
}

// unquoted is the value of a string literal; "" if it is none.
func unquoted(e ast.Expr) string {
	if literal, ok := e.(*ast.BasicLit); ok {
		value, _ := strconv.Unquote(literal.Value)
		return value
	}
	return ""
}

// imports are the paths of a file's imports by the names that it uses for them.
func imports(file *ast.File) map[string]string {
	paths := map[string]string{}
	for _, spec := range file.Imports {
		imported := unquoted(spec.Path)
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		paths[name] = imported
	}
	return paths
}

// declared is a variable or function of a file; nil if it has none of that name.
func declared(file *ast.File, name string) (found ast.Node) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch d := n.(type) {
		case *ast.FuncDecl:
			if d.Name.Name == name {
				found = d.Body
			}
		case *ast.ValueSpec:
			if d.Names[0].Name == name {
				found = d
			}
		}
		return found == nil
	})
	return found
}
