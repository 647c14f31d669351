package operators

import (
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
	"regexp"
	"strings"
	"testing"

	_ "github.com/setpoint-io/setpoint/setpointtest/beside"  // docs/go-test.md shows it
	_ "github.com/setpoint-io/setpoint/setpointtest/envtest" // docs/go-test.md shows it
	_ "github.com/setpoint-io/setpoint/setpointtest/envtest/manager"
	_ "github.com/setpoint-io/setpoint/setpointtest/kubectl"
)

const (
	root = "../.."
	// names are the packages that a snippet which is no whole file may use without importing them.
	names = `import ("context"; "testing"; "testing/synctest"; "time"; "k8s.io/client-go/rest"; ctrl "sigs.k8s.io/controller-runtime"
"github.com/onsi/ginkgo/v2"; "github.com/onsi/gomega"; "github.com/setpoint-io/setpoint"; "github.com/setpoint-io/setpoint/setpointtest/envtest/manager"; "github.com/setpoint-io/setpoint/setpointtest"
"github.com/setpoint-io/setpoint/setpointtest/kubectl"; "example.com/shop")` + "\n"
	// around stands around statements. Its inner block lets them declare these names anew.
	around = `func _(ctx context.Context, t *testing.T, c *setpointtest.Cluster, mark *setpointtest.Mark,
newManager func(*testing.T, *rest.Config) ctrl.Manager) {{` + "\n"
	// shop is the reader's own operator, as far as the snippets use it.
	shop = `package shop
import ctrl "sigs.k8s.io/controller-runtime"
func SetupWithManager(ctrl.Manager) error { return nil }`
)

// TestPages: every Go snippet of every page compiles against the libraries as they are.
func TestPages(t *testing.T) {
	compiler := newCompiler(t)
	found := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md"} {
		pages, err := filepath.Glob(filepath.Join(root, pattern))
		must(t, err)
		for _, page := range pages {
			text, err := os.ReadFile(page)
			must(t, err)
			for _, snippet := range snippets(strings.TrimPrefix(filepath.ToSlash(page), root+"/"), string(text)) {
				found++
				if err := compiler.check(snippet); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if found == 0 {
		t.Fatal("no page has a snippet of Go")
	}
	t.Log(found, "snippets")
}

// TestPagesThatLie: the line of the page is named where it does not compile.
func TestPagesThatLie(t *testing.T) {
	compiler := newCompiler(t)
	for name, test := range map[string]struct{ text, want string }{
		"a file":             {"\n```go\npackage a\n\nimport \"os\"\n```\n", `page.md:5:8: "os" imported and not used`},
		"a declaration":      {"```go\nvar x setpointtest.Nothing\n```\n", "page.md:2:20: undefined: setpointtest.Nothing"},
		"a statement":        {"# A\n```go\nc.Apply(\"a\")\nc.Forget()\n```\n", "page.md:4:3: c.Forget undefined"},
		"after what is left": {"```go\n\t…\nc.Apply(1)\n```\n", "page.md:3:9: cannot use 1"},
		"no Go":              {"```go\nc.Apply(…)\n```\n", "page.md:2:9: illegal character"},
		"a call in a line":   {"\nSay `c.Apply()` and\n`c.Forkk(t)`.\n", "page.md:3:3: c.Forkk undefined"},
		"a missing package":  {"```go\nimport \"example.com/other\"\n```\n", "page.md:2:8: could not import example.com/other"},
		"an open function":   {"```go\nfunc A() {\n…\n```\n", "page.md:3:2: expected '}'"},
		"a block in a list":  {"- A:\n\n  ```go\n  c.Forget()\n  ```\n", "page.md:4:5: c.Forget undefined"},
		"a block of no end":  {"```go\nc.Apply()\nNow it is applied.\n", "page.md:3:5: expected"},
	} {
		t.Run(name, func(t *testing.T) {
			var errs []error
			for _, snippet := range snippets("page.md", test.text) {
				errs = append(errs, compiler.check(snippet))
			}
			if err := errors.Join(errs...); !strings.Contains(fmt.Sprint(err), test.want) {
				t.Errorf("said %v, want %q", err, test.want)
			}
		})
	}
}

var (
	// goBlock is a block that is marked as Go; call is a call of the test library within a sentence.
	goBlock = regexp.MustCompile("(?s)```go\n(.*?)(?:```|$)")
	call    = regexp.MustCompile("`((?:c|kubectl|setpointtest)\\.[A-Z][^`\n]*\\))`")
	// leftOut is a line that says only that something is left out.
	leftOut  = regexp.MustCompile(`(?m)^[ \t]*…$`)
	declares = regexp.MustCompile(`^(?:import|const|type|var|func)\b`)
)

// snippets returns a page's Go, each as a file whose line directive names the place on the page.
func snippets(page, text string) (files []string) {
	for _, kind := range []*regexp.Regexp{goBlock, call} {
		for _, at := range kind.FindAllStringSubmatchIndex(text, -1) {
			code := leftOut.ReplaceAllString(text[at[2]:at[3]], "")
			place := fmt.Sprintf("//line %s:%d:1\n", page, 1+strings.Count(text[:at[2]], "\n"))
			switch {
			case strings.HasPrefix(code, "package "):
				files = append(files, place+code)
			case strings.HasPrefix(code, "import "):
				files = append(files, fragment+place+code)
			case declares.MatchString(code):
				files = append(files, fragment+names+place+code)
			default:
				files = append(files, fragment+names+around+place+code+"\n}}")
			}
		}
	}
	return files
}

// fragment begins a snippet that is no whole file. It need not use what it imports and declares.
const fragment = "package fragment\n"

// compiler checks types against the export data that go build keeps.
type compiler struct {
	files     *token.FileSet
	libraries types.Importer
}

func newCompiler(t *testing.T) *compiler {
	t.Helper()
	list := exec.Command("go", "list", "-test", "-deps", "-export", "-f", "{{.ImportPath}}={{.Export}}", ".")
	list.Stderr = t.Output()
	said, err := list.Output()
	must(t, err)
	exports := map[string]string{}
	for line := range strings.Lines(string(said)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "=")
		exports[path] = file
	}
	files := token.NewFileSet()
	return &compiler{files: files, libraries: importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, errors.New("this module does not require it")
		}
		return os.Open(exports[path])
	})}
}

// Import makes a compiler the Importer of what it checks.
func (c *compiler) Import(path string) (*types.Package, error) {
	if path == "example.com/shop" {
		return c.compile(path, shop, nil)
	}
	return c.libraries.Import(path)
}

// check returns all that the compiler would say of a snippet.
func (c *compiler) check(text string) error {
	var errs []error
	_, err := c.compile("page", text, func(err error) {
		var said types.Error
		if errors.As(err, &said) && said.Soft && strings.HasPrefix(text, fragment) {
			return
		}
		errs = append(errs, err)
	})
	if len(errs) == 0 && !errors.As(err, new(types.Error)) {
		return err
	}
	return errors.Join(errs...)
}

func (c *compiler) compile(path, text string, report func(error)) (*types.Package, error) {
	file, err := parser.ParseFile(c.files, "snippet.go", text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return (&types.Config{Importer: c, Error: report}).Check(path, c.files, []*ast.File{file}, nil)
}
