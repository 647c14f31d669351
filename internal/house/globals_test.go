package house

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// globals are variables of packages that change while a process runs, and why no object can have them.
var globals = map[string]string{
	"agent/runtime/cri/embedded/seccomp.kept": "what is compiled depends on its arguments only, and each process compiles it once",
	"agent/net/network/nft.setIDs":            "is held for a counter that a library has for the process",
	"cmd/setpoint/translations.skipped":       "is set once, before main",
	"internal/freeport.mu":                    "guards own",
	"internal/freeport.own":                   "ports are the process's: two tests may not get the same",
	"setpoint.timers":                         "is held for a bug of the race detector, which the process has",
	"setpointtest.bubbles":                    "the process's goroutines are looked at together, from outside of all bubbles",
	"setpointtest.clusters":                   "tests of a process ask it whether they have started a cluster twice",
	"setpointtest/beside.shared":              "the tests of a process share its connection to the test server",
	"internal/kubectlrun.running":             "is held for a variable that kubectl has for the process",
}

// TestHouseNoGlobals: two clusters of one process, and two tests, must not meet in a variable.
func TestHouseNoGlobals(t *testing.T) {
	names, used := map[string][]string{}, map[string]bool{}
	eachSource(t, func(f *sourceFile) {
		if !f.test && !f.generated {
			names[f.dir] = append(names[f.dir], variablesOf(f)...)
		}
	})
	eachSource(t, func(f *sourceFile) {
		if f.test || f.generated {
			return
		}
		for _, name := range changing(f, names[f.dir]) {
			used[name] = true
			if globals[name] == "" {
				t.Errorf("%s: %s changes while the process runs\n\twhy not: two clusters of one process, and two tests, would meet in it; "+
					"make it a field, or write the reason into globals", f.path, name)
			}
		}
	})
	noLeftovers(t, "globals", globals, used)
}

// variablesOf are the variables of the package that a file declares.
func variablesOf(f *sourceFile) (names []string) {
	eachVariable(f, func(spec *ast.ValueSpec) {
		for _, name := range spec.Names {
			if name.Name != "_" {
				names = append(names, name.Name)
			}
		}
	})
	return names
}

func eachVariable(f *sourceFile, visit func(*ast.ValueSpec)) {
	for _, declaration := range f.syntax.Decls {
		if group, ok := declaration.(*ast.GenDecl); ok && group.Tok == token.VAR && !isEmbedded(group) {
			for _, spec := range group.Specs {
				visit(spec.(*ast.ValueSpec))
			}
		}
	}
}

// isEmbedded: what go:embed fills is declared without a value and never changes.
func isEmbedded(group *ast.GenDecl) bool {
	return group.Doc != nil && slices.ContainsFunc(group.Doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed") })
}

// changing are the variables of the package that a file declares without a value, or to which one of its functions assigns, fields and
// elements included.
func changing(f *sourceFile, names []string) (found []string) {
	dir := f.dir
	if dir == "." {
		dir = f.syntax.Name.Name
	}
	add := func(name string) {
		if full := fmt.Sprintf("%s.%s", dir, name); !slices.Contains(found, full) {
			found = append(found, full)
		}
	}
	eachVariable(f, func(spec *ast.ValueSpec) {
		if len(spec.Values) == 0 {
			add(spec.Names[0].Name)
		}
	})
	for _, declaration := range f.syntax.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		local := localsOf(function)
		for _, name := range assigned(function) {
			if slices.Contains(names, name) && !local[name] {
				add(name)
			}
		}
	}
	return found
}

// assigned are the names to which a function assigns without declaring them there.
func assigned(function *ast.FuncDecl) (names []string) {
	to := func(x ast.Expr) {
		if name := rootOf(x); name != "" {
			names = append(names, name)
		}
	}
	ast.Inspect(function, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, left := range n.Lhs {
					to(left)
				}
			}
		case *ast.IncDecStmt:
			to(n.X)
		}
		return true
	})
	return names
}

// rootOf is a in a.b[c].
func rootOf(x ast.Expr) string {
	switch n := x.(type) {
	case *ast.Ident:
		return n.Name
	case *ast.SelectorExpr:
		return rootOf(n.X)
	case *ast.IndexExpr:
		return rootOf(n.X)
	case *ast.StarExpr:
		return rootOf(n.X)
	case *ast.ParenExpr:
		return rootOf(n.X)
	}
	return ""
}

// localsOf are the names that a function declares anywhere in it.
func localsOf(function *ast.FuncDecl) map[string]bool {
	local := map[string]bool{}
	declare := func(names ...ast.Expr) {
		for _, name := range names {
			if ident, ok := name.(*ast.Ident); ok {
				local[ident.Name] = true
			}
		}
	}
	ast.Inspect(function, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.Field:
			for _, name := range n.Names {
				declare(name)
			}
		case *ast.ValueSpec:
			for _, name := range n.Names {
				declare(name)
			}
		case *ast.AssignStmt:
			if n.Tok == token.DEFINE {
				declare(n.Lhs...)
			}
		case *ast.RangeStmt:
			if n.Tok == token.DEFINE {
				declare(n.Key, n.Value)
			}
		}
		return true
	})
	return local
}
