package house

import (
	"go/ast"
	"strings"
	"testing"
)

// TestHouseEveryGroupIsGolden: a group of kinds has a test that runs over its testdata; without it no kind of the group is looked at.
func TestHouseEveryGroupIsGolden(t *testing.T) {
	groups, golden := map[string]bool{}, map[string]bool{}
	eachSource(t, func(f *sourceFile) {
		if strings.HasPrefix(f.dir, "apiserver/kinds/") {
			groups[f.dir] = groups[f.dir] || !f.test && declares(f, "Kinds")
			golden[f.dir] = golden[f.dir] || len(calls(f, module+"/apiserver/kinds/kindstest", "Golden")) > 0
		}
	})
	count := 0
	for dir, is := range groups {
		if !is {
			continue
		}
		if count++; !golden[dir] {
			t.Errorf("%s has no golden_test.go\n\twhy: no test reads its testdata; start from apiserver/kinds/core/golden_test.go", dir)
		}
	}
	if count < 15 {
		t.Errorf("only %d groups found", count)
	}
}

// declares reports whether a file declares the function.
func declares(f *sourceFile, function string) bool {
	for _, declaration := range f.syntax.Decls {
		if declared, ok := declaration.(*ast.FuncDecl); ok && declared.Recv == nil && declared.Name.Name == function {
			return true
		}
	}
	return false
}
