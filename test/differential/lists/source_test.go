package lists

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// file is one of a package, with the constants of the package that are texts.
type file struct {
	path      string
	syntax    *ast.File
	constants map[string]string
}

// upstreamModules are upstream's modules that this module requires, and their folders.
func upstreamModules(t *testing.T) map[string]string {
	t.Helper()
	return foldersOf(t, required(t)...)
}

// source is a folder of upstream's by its import path, in the versions of this module.
func source(t *testing.T, importPath string) string {
	t.Helper()
	module := strings.Join(strings.SplitN(importPath, "/", 3)[:2], "/")
	return filepath.Join(foldersOf(t, module)[module], strings.TrimPrefix(importPath, module))
}

// foldersOf are the folders of modules. One that is not in the module cache ends the test: what its source has would be found nowhere.
func foldersOf(t *testing.T, modules ...string) map[string]string {
	t.Helper()
	dirs, missing := map[string]string{}, []string{}
	for line := range strings.Lines(output(t, append([]string{"list", "-e", "-m", "-f", "{{.Path}} {{.Dir}}"}, modules...))) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		if dirs[path] = dir; dir == "" {
			missing = append(missing, path)
		}
	}
	if len(missing) > 0 {
		t.Fatalf("not in the module cache: %s: run 'go mod download' in test/differential", strings.Join(missing, ", "))
	}
	return dirs
}

// required are the modules of upstream's in go.mod.
func required(t *testing.T) (paths []string) {
	t.Helper()
	var file struct{ Require []struct{ Path string } }
	if err := json.Unmarshal([]byte(output(t, []string{"mod", "edit", "-json"})), &file); err != nil {
		t.Fatal(err)
	}
	for _, r := range file.Require {
		if strings.HasPrefix(r.Path, "k8s.io/") {
			paths = append(paths, r.Path)
		}
	}
	return paths
}

// output is what a command of go says. It looks nothing up: modules that are not here are to be told, not fetched.
func output(t *testing.T, args []string) string {
	t.Helper()
	command := exec.Command("go", args...)
	command.Env = append(command.Environ(), "GOPROXY=off")
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %v", command, err)
	}
	return string(out)
}

// read visits the files below dir that have the text in them, but not tests and what upstream does not ship.
func read(t *testing.T, dir, text string, visit func(file)) {
	t.Helper()
	constants := map[string]map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			if name := entry.Name(); name == "vendor" || name == "staging" || name == "testdata" || name == "test" || name == "third_party" {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(content, []byte(text)) {
			return err
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), path, content, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		folder := filepath.Dir(path)
		if constants[folder] == nil {
			constants[folder] = constantsOf(t, folder)
		}
		visit(file{path, syntax, constants[folder]})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// constantsOf are the texts that a package has names for.
func constantsOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	found := map[string]string{}
	inspect(t, folder, func(n ast.Node) {
		if spec, ok := n.(*ast.ValueSpec); ok {
			for i, value := range spec.Values {
				if text, ok := literal(value); ok {
					found[spec.Names[i].Name] = text
				}
			}
		}
	})
	return found
}

// inspect visits all of a package, without its tests.
func inspect(t *testing.T, folder string, visit func(ast.Node)) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s has no Go files: %v", folder, err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		syntax, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(syntax, func(n ast.Node) bool { visit(n); return true })
	}
}

// parsed is a Go file of upstream's.
func parsed(t *testing.T, file string) *ast.File {
	t.Helper()
	syntax, err := parser.ParseFile(token.NewFileSet(), filepath.Join(source(t, path.Dir(file)), path.Base(file)), nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return syntax
}

// imports are the paths of a file's imports by the names that it uses for them.
func imports(syntax *ast.File) map[string]string {
	paths := map[string]string{}
	for _, spec := range syntax.Imports {
		imported, _ := literal(spec.Path)
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		paths[name] = imported
	}
	return paths
}

// declared is a variable or function of a file; nil if it has none of that name.
func declared(syntax *ast.File, name string) (found ast.Node) {
	ast.Inspect(syntax, func(n ast.Node) bool {
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

// literal is what a text in quotes says.
func literal(e ast.Expr) (string, bool) {
	l, ok := e.(*ast.BasicLit)
	if !ok || l.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(l.Value)
	return text, err == nil
}

// text is what an expression says, by itself or by a constant of its package.
func (f file) text(e ast.Expr) (string, bool) {
	if name, ok := e.(*ast.Ident); ok {
		text, ok := f.constants[name.Name]
		return text, ok
	}
	return literal(e)
}

// called is the last name of the function that is called.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}
