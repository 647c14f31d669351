package lists

import (
	"fmt"
	"go/ast"
	"testing"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// printers is where upstream says which columns a kind has in a table.
const printers = "k8s.io/kubernetes/pkg/printers/internalversion/printers.go"

// column is one of a table, without its description: name, type, format, priority.
type column [4]string

// upstreamColumns are the columns of kinds, by the kind's name.
func upstreamColumns(t *testing.T) map[string][]column {
	t.Helper()
	file := parsed(t, printers)
	lists, byKind := map[string][]column{}, map[string][]column{}
	ast.Inspect(declared(file, "AddHandlers"), func(n ast.Node) bool {
		switch s := n.(type) {
		case *ast.AssignStmt:
			name := s.Lhs[0].(*ast.Ident).Name
			switch right := s.Rhs[0].(type) {
			case *ast.CompositeLit:
				lists[name] = columnsOf(right.Elts)
			case *ast.CallExpr: // append(list, more...), or a handler
				if function, ok := right.Fun.(*ast.Ident); ok && function.Name == "append" {
					lists[name] = append(lists[name], columnsOf(right.Args[1].(*ast.CompositeLit).Elts)...)
				}
			}
		case *ast.CallExpr:
			if called, ok := s.Fun.(*ast.SelectorExpr); ok && called.Sel.Name == "TableHandler" {
				byKind[printedBy(file, s.Args[1].(*ast.Ident).Name)] = lists[s.Args[0].(*ast.Ident).Name]
			}
		}
		return true
	})
	return byKind
}

// columnsOf reads a list of definitions.
func columnsOf(list []ast.Expr) (columns []column) {
	for _, element := range list {
		c := column{"", "", "", "0"}
		for _, field := range element.(*ast.CompositeLit).Elts {
			pair := field.(*ast.KeyValueExpr)
			switch pair.Key.(*ast.Ident).Name {
			case "Name":
				c[0], _ = literal(pair.Value)
			case "Type":
				c[1], _ = literal(pair.Value)
			case "Format":
				c[2], _ = literal(pair.Value)
			case "Priority":
				c[3] = pair.Value.(*ast.BasicLit).Value
			}
		}
		columns = append(columns, c)
	}
	return columns
}

// printedBy is the kind that a function makes rows of.
func printedBy(file *ast.File, function string) string {
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Name.Name == function {
			if s, ok := f.Type.Params.List[0].Type.(*ast.StarExpr).X.(*ast.SelectorExpr); ok {
				return s.Sel.Name
			}
		}
	}
	return ""
}

// byDefault are the columns of a kind that upstream's list does not have.
var byDefault = []column{{"Name", "string", "name", "0"}, {"Created At", "date", "", "0"}}

// TestColumns: tables of built-in kinds have upstream's columns.
func TestColumns(t *testing.T) {
	upstream := upstreamColumns(t)
	if len(upstream) < 50 {
		t.Fatalf("%s has columns of %d kinds", printers, len(upstream))
	}
	for _, kind := range kinds.All() {
		name := kind.GroupVersionKind.Kind
		theirs, listed := upstream[name]
		if !listed || unlisted[name] != "" {
			theirs = byDefault
		}
		if a, b := fmt.Sprint(theirs), fmt.Sprint(ourColumns(kind)); a != b && elsewhere[name] == "" {
			t.Errorf("%s\nupstream: %s\nhere:     %s", kind.GroupVersionKind, a, b)
		}
	}
}

func ourColumns(kind *resource.Any) (columns []column) {
	for _, c := range kind.Columns {
		columns = append(columns, column{c.Name, c.Type, c.Format, fmt.Sprint(c.Priority)})
	}
	return columns
}

// elsewhere are kinds whose columns upstream has in other servers.
var elsewhere = map[string]string{"CustomResourceDefinition": "apiextensions-apiserver", "APIService": "kube-aggregator"}

// unlisted are kinds whose registry does not use the list.
var unlisted = map[string]string{"CSIStorageCapacity": "its registry has the default columns"}
