package house

import (
	"go/ast"
	"go/parser"
	"slices"
	"strings"
	"testing"
)

// unsyncedRenames are files with functions that rename and sync no folder after that, and why a power cut may take the name back.
var unsyncedRenames = map[string]string{
	"agent/base/private/private.go":                "for what may fall back to its former content (package durable)",
	"agent/runtime/cri/embedded/damaged.go":        "records that cannot be read: they are kept for people",
	"agent/runtime/cri/embedded/images/add.go":     "a layer counts once it is settled, which syncs the file system",
	"agent/runtime/cri/embedded/images/tars.go":    "notes of a layer, which is read again without them",
	"agent/runtime/cri/embedded/shim/container.go": "how a container ended; none of before the power cut runs",
	"agent/runtime/logs/rotate.go":                 "logs of containers, which are not synced either",
	"internal/testlink/server.go":                  "the log of a test",
	"raftstore/replica/segments/maker.go":          "its disk syncs the names, and tests see when",
}

// What was renamed is under its name after a power cut once the folder is synced. A function that renames does that itself.
func TestHouseRenamesAreSynced(t *testing.T) {
	used := map[string]bool{}
	eachSource(t, func(f *sourceFile) {
		if f.test || strings.HasPrefix(f.dir, "test/") {
			return
		}
		for _, at := range renamesUnsynced(f) {
			used[f.path] = true
			if unsyncedRenames[f.path] == "" {
				t.Errorf("%s: os.Rename without a sync of the folder\n\twhy not: a power cut takes the name back; internal/durable knows how", at)
			}
		}
	})
	noLeftovers(t, "unsyncedRenames", unsyncedRenames, used)
}

// renamesUnsynced are the calls of os.Rename in a file after which the function that makes them syncs no folder.
func renamesUnsynced(f *sourceFile) (found []string) {
	for _, decl := range f.syntax.Decls {
		var renames, synced []ast.Node
		ast.Inspect(decl, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.CallExpr:
				if isSyncFolder(n.Fun) {
					synced = append(synced, n)
				}
			case *ast.SelectorExpr:
				if n.Sel.Name == "Rename" && packageNamed(f, n.X) == "os" {
					renames = append(renames, n)
				}
			}
			return true
		})
		for _, rename := range renames {
			if !slices.ContainsFunc(synced, func(n ast.Node) bool { return n.Pos() > rename.Pos() }) {
				found = append(found, position(rename))
			}
		}
	}
	return found
}

// isSyncFolder reports whether a function is called SyncFolder or syncFolder, of whatever package or value.
func isSyncFolder(called ast.Expr) bool {
	switch x := called.(type) {
	case *ast.SelectorExpr:
		return strings.EqualFold(x.Sel.Name, "SyncFolder")
	case *ast.Ident:
		return strings.EqualFold(x.Name, "SyncFolder")
	}
	return false
}

// A function that syncs excuses no other one, nor does a sync before the rename.
func TestRenamesAreJudgedByFunction(t *testing.T) {
	text := `package p

import (
	"os"

	"durable"
)

func synced() { _ = os.Rename("a", "b"); _ = durable.SyncFolder(".") }

func forgets() { _ = os.Rename("a", "b") }

func early() { _ = durable.SyncFolder("."); _ = os.Rename("a", "b") }
`
	syntax, err := parser.ParseFile(fileSet, "p.go", text, 0)
	if err != nil {
		t.Fatal(err)
	}
	got := renamesUnsynced(&sourceFile{path: "p.go", syntax: syntax, imports: []string{"os", "durable"}})
	if want := []string{"p.go:11", "p.go:13"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}
