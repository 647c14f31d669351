package house

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/printer"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// publicPackages are for programs of others. All else can be imported, by accident, and changes without notice.
var publicPackages = []string{".", "agent/host", "setpointtest", "setpointtest/beside", "setpointtest/envtest", "setpointtest/envtest/manager", "setpointtest/kubectl"}

// apiTexts has a file for each of them: all that it exports, and the types of ours that these name.
const apiTexts = "internal/house/testdata/api"

// TestHouseAPI: what others build on does not change unseen.
func TestHouseAPI(t *testing.T) {
	wanted := []string{}
	for _, dir := range publicPackages {
		file := path.Join(apiTexts, apiFile(dir))
		wanted = append(wanted, file)
		text := apiOf(t, dir)
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		kept, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%v: go test ./internal/house -update", err)
			continue
		}
		tell(t, changesOfAPI(dir, string(kept), text))
	}
	files, err := filepath.Glob(apiTexts + "/*")
	if slices.Sort(wanted); err != nil || !slices.Equal(files, wanted) {
		t.Errorf("%s has %v, want %v (%v): publicPackages says what is public", apiTexts, files, wanted, err)
	}
}

func apiFile(dir string) string {
	if dir == "." {
		return "setpoint.txt"
	}
	return strings.ReplaceAll(dir, "/", "-") + ".txt"
}

// changesOfAPI are the lines of which the kept text and the sources differ.
func changesOfAPI(dir, kept, now string) (found []string) {
	if kept == now {
		return nil
	}
	before, after := strings.Split(kept, "\n"), strings.Split(now, "\n")
	var lines []string
	for _, line := range before {
		if !slices.Contains(after, line) {
			lines = append(lines, "- "+line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			lines = append(lines, "+ "+line)
		}
	}
	return []string{fmt.Sprintf("the API of %s is another than the kept one:\n%s\n\twhy it is kept: others build on it, and what goes breaks their programs; "+
		"if you mean it: go test ./internal/house -update, and CONTRIBUTING.md says what else (A change of what is public)", dir, strings.Join(lines, "\n"))}
}

// apiOf is what a package exports, without comments, and then the types of our other packages that this names, and that those name.
func apiOf(t *testing.T, dir string) string {
	t.Helper()
	all := listAPI(t, dir, "")
	text, named, others := "package "+path.Join(module, dir)+"\n\n"+all.text(), all.named, map[string]string{}
	for len(named) > 0 {
		name := named[0]
		named = named[1:]
		other, symbol, _ := strings.Cut(name, " ")
		if _, done := others[name]; done || slices.Contains(publicPackages, other) {
			continue
		}
		one := listAPI(t, other, symbol)
		others[name], named = one.text(), append(named, one.named...)
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		if others[name] != "" { // it is a type, and no value or function
			text += "\nof " + name + ":\n\n" + others[name]
		}
	}
	return text
}

// An apiList is what a package exports, or one type of it with its methods.
type apiList struct {
	dir, only string // only is the type; "": all
	set       *token.FileSet
	files     map[string]*sourceFile
	texts     []string
	named     []string // types of our packages that these name, as "folder Type"
}

func listAPI(t *testing.T, dir, only string) *apiList {
	t.Helper()
	l := &apiList{dir: dir, only: only, set: token.NewFileSet(), files: map[string]*sourceFile{}}
	eachSourceOfAll(t, func(f *sourceFile) {
		if f.dir == dir && !f.test {
			l.files[f.path] = f
		}
	})
	if err := l.list(); err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	return l
}

func (l *apiList) list() error {
	var files []*ast.File
	for _, name := range slices.Sorted(maps.Keys(l.files)) {
		syntax, err := parser.ParseFile(l.set, name, l.files[name].text, parser.SkipObjectResolution) // without comments; go/doc changes it
		if err != nil {
			return err
		}
		files = append(files, syntax)
	}
	of, err := doc.NewFromFiles(l.set, files, path.Join(module, l.dir))
	if err != nil {
		return err
	}
	if l.only == "" {
		l.values(of.Consts, of.Vars)
		l.functions(of.Funcs)
	}
	for _, declared := range of.Types {
		if l.only == "" {
			l.values(declared.Consts, declared.Vars)
			l.functions(declared.Funcs)
		}
		if l.only == "" || l.only == declared.Name {
			l.add(declared.Decl)
			l.functions(declared.Methods)
		}
	}
	return nil
}

func (l *apiList) values(lists ...[]*doc.Value) {
	for _, value := range slices.Concat(lists...) {
		l.add(value.Decl)
	}
}

func (l *apiList) functions(list []*doc.Func) {
	for _, function := range list {
		function.Decl.Body = nil
		l.add(function.Decl)
	}
}

func (l *apiList) add(node ast.Node) {
	var b bytes.Buffer
	if err := printer.Fprint(&b, l.set, node); err != nil {
		panic(err) // a buffer takes everything
	}
	l.texts = append(l.texts, blanks.ReplaceAllString(emptyLines.ReplaceAllString(b.String(), "\n"), "$1 "))
	file := l.files[l.set.Position(node.Pos()).Filename]
	ast.Inspect(node, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.SelectorExpr:
			if other, ours := packageOfModule(packageNamed(file, n.X)); ours {
				l.named = append(l.named, other+" "+n.Sel.Name)
			}
			return false
		case *ast.Ident:
			if l.only != "" && n.IsExported() {
				l.named = append(l.named, l.dir+" "+n.Name)
			}
		}
		return true
	})
}

var (
	blanks     = regexp.MustCompile(`(\S)[ \t]+`)
	emptyLines = regexp.MustCompile(`\n\s*\n`)
)

func (l *apiList) text() string {
	if len(l.texts) == 0 {
		return ""
	}
	return strings.Join(l.texts, "\n") + "\n"
}

// TestHouseAPIIsWhole: what others can name is in the text, and nothing else is.
func TestHouseAPIIsWhole(t *testing.T) {
	for source, want := range map[string]string{
		"type A struct { B, c int }":                    "type A struct {\n\tB int\n\t// contains filtered or unexported fields\n}\n",
		"type a struct { B int }; func F() a":           "func F() a\n",
		"type A[T any] int; func (a *A[T]) M(b int) {}": "type A[T any] int\nfunc (a *A[T]) M(b int)\n",
		"type I interface { m(); N() }":                 "type I interface {\n\tN()\n\t// contains filtered or unexported methods\n}\n",
		"const A, b = 1, 2":                             "const A, _ = 1, 2\n",
		"// why\nvar V = f(  1)":                        "var V = f(1)\n",
	} {
		f, err := parseText("server/x.go", []byte("package server\n"+source))
		if err != nil {
			t.Fatal(err)
		}
		l := &apiList{dir: f.dir, set: token.NewFileSet(), files: map[string]*sourceFile{f.path: f}}
		if err := l.list(); err != nil || l.text() != want {
			t.Errorf("%s: %q, want %q (%v)", source, l.text(), want, err)
		}
	}
	if got := changesOfAPI("x", "a\nb\n", "a\nc\n"); len(got) != 1 || !strings.Contains(got[0], "- b\n+ c\n") {
		t.Errorf("what changed is told as %q", got)
	}
}
