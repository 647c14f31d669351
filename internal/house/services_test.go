package house

import (
	"go/ast"
	"testing"
)

// openServices are files with a service that everybody may call, and by what it judges them instead.
var openServices = map[string]string{
	"server/joining.go": "by join tokens and the certificates of nodes: who joins has no name yet",
}

// TestHouseServicesSayWhoMayCall: an apiserver.Service without Allow is open to everybody, who has no certificate either.
func TestHouseServicesSayWhoMayCall(t *testing.T) {
	used := map[string]bool{}
	eachSource(t, func(f *sourceFile) {
		if f.test {
			return
		}
		for _, at := range servicesForAll(f) {
			if used[f.path] = true; openServices[f.path] == "" {
				t.Errorf("%s: a service without Allow\n\twhy not: everybody may call it, also without credentials; say who may, or write into openServices by what it judges", at)
			}
		}
	})
	noLeftovers(t, "openServices", openServices, used)
}

// servicesForAll finds literals that have the fields of an apiserver.Service, but Allow.
func servicesForAll(f *sourceFile) (found []string) {
	ast.Inspect(f.syntax, func(node ast.Node) bool {
		literal, ok := node.(*ast.CompositeLit)
		if !ok {
			return true
		}
		fields := map[string]bool{}
		for _, element := range literal.Elts {
			if pair, ok := element.(*ast.KeyValueExpr); ok {
				if key, ok := pair.Key.(*ast.Ident); ok {
					fields[key.Name] = true
				}
			}
		}
		if fields["Prefix"] && fields["Handler"] && !fields["Allow"] {
			found = append(found, position(literal))
		}
		return true
	})
	return found
}
