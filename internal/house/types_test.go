package house

import (
	"fmt"
	"go/ast"
	"testing"
)

// A type is what one person can hold in mind at once: whoever changes a method may have to know all others, and each field.
const (
	methodsMax = 60
	fieldsMax  = 40
)

// generousTypes may have more methods or fields, for the reason given. The list only shrinks.
var generousTypes = map[string]string{
	"agent.agent":                        "is the order in which one node's parts are opened, joined and told of; each method is one of these joints",
	"agent/runtime/cri/embedded.Runtime": "is both services of CRI, a method for each call, on one table of pods and containers with one lock",
	"agent/pods.worker":                  "is the one goroutine of a pod: what it does to the runtime, in the order that it decides",
	"apiserver/explain.explainer":        "follows causes through every kind, a method for each, and must come to no object twice",
	"apiserver/resource.Kind":            "is a table's row, not a knot: every function that a kind may have, most of them nil",
	"raftstore.Store":                    "is the face of the store, and what servers ask of each other about one log, term and membership",
	"raftstore/replica.Replica":          "is one server's raft, disk and marks, which end together when one of them fails",
}

// TestHouseTypes finds the knots that the number of lines does not: a package may be short enough and still be one type.
func TestHouseTypes(t *testing.T) {
	types, used := map[string]*typeSize{}, map[string]bool{}
	eachSource(t, func(f *sourceFile) {
		if !f.test && !f.generated {
			measureTypes(f, types)
		}
	})
	tell(t, largeTypes(types, used))
	noLeftovers(t, "generousTypes", generousTypes, used)
}

// largeTypes are those beyond a limit; it notes in used which types need an exception.
func largeTypes(types map[string]*typeSize, used map[string]bool) (found []string) {
	for name, size := range types {
		if len(size.methods) <= methodsMax && size.fields <= fieldsMax {
			continue
		}
		if used[name] = true; generousTypes[name] == "" {
			found = append(found, fmt.Sprintf("%s has %d methods and %d fields, more than %d and %d\n\twhy not: who changes one of them must know all; "+
				"give what belongs together a type of its own, or write into generousTypes what holds them together", name, len(size.methods), size.fields, methodsMax, fieldsMax))
		}
	}
	return found
}

type typeSize struct {
	methods map[string]bool // by name: one that each system has in a file of its own counts once
	fields  int
}

// measureTypes adds what a file says of the types of its package, each named as folder.Type.
func measureTypes(f *sourceFile, types map[string]*typeSize) {
	size := func(name string) *typeSize {
		name = f.dir + "." + name
		if types[name] == nil {
			types[name] = &typeSize{methods: map[string]bool{}}
		}
		return types[name]
	}
	for _, declaration := range f.syntax.Decls {
		switch declared := declaration.(type) {
		case *ast.FuncDecl:
			if declared.Recv != nil {
				size(receiverOf(declared)).methods[declared.Name.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range declared.Specs {
				if named, ok := spec.(*ast.TypeSpec); ok {
					size(named.Name.Name).fields = max(size(named.Name.Name).fields, fieldsOf(named))
				}
			}
		}
	}
}

// receiverOf is T of *T, T[K] and *T[K, V].
func receiverOf(method *ast.FuncDecl) string {
	x := method.Recv.List[0].Type
	for {
		switch n := x.(type) {
		case *ast.StarExpr:
			x = n.X
		case *ast.IndexExpr:
			x = n.X
		case *ast.IndexListExpr:
			x = n.X
		case *ast.Ident:
			return n.Name
		default:
			return ""
		}
	}
}

// fieldsOf counts the fields of a struct, an embedded one as one, and the methods that an interface asks for.
func fieldsOf(named *ast.TypeSpec) int {
	switch n := named.Type.(type) {
	case *ast.StructType:
		return n.Fields.NumFields()
	case *ast.InterfaceType:
		return n.Methods.NumFields()
	}
	return 0
}
