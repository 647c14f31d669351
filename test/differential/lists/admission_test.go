package lists

import (
	"go/ast"
	"slices"
	"testing"

	"github.com/setpoint-io/setpoint/apiserver/admission/choice"
)

// pluginOptions is where upstream lists its plugins.
const pluginOptions = "k8s.io/kubernetes/pkg/kubeapiserver/options/plugins.go"

// stricter are plugins that are on here and off upstream, because Setpoint relies on them.
var stricter = map[string]bool{"NodeRestriction": true, "DenyServiceExternalIPs": true}

// TestAdmissionPlugins: apiserver/admission/choice has upstream's plugins, in upstream's order, and knows which of them are on by default.
func TestAdmissionPlugins(t *testing.T) {
	file := parsed(t, pluginOptions)
	ordered, on := pluginsIn(t, file, "AllOrderedPlugins"), pluginsIn(t, file, "DefaultOffAdmissionPlugins")
	var ours []string
	for _, p := range choice.All() {
		ours = append(ours, p.Name)
		switch upstreamRuns := slices.Contains(on, p.Name); {
		case upstreamRuns && p.Default == choice.Off:
			t.Errorf("%s is on by default upstream", p.Name)
		case !upstreamRuns && p.Default == choice.On && !stricter[p.Name]:
			t.Errorf("%s is off by default upstream", p.Name)
		}
	}
	if !slices.Equal(ordered, ours) {
		t.Errorf("plugins in order are\n%q upstream, and here\n%q", ordered, ours)
	}
}

// pluginsIn are the names of the plugins whose constants a declaration lists.
func pluginsIn(t *testing.T, file *ast.File, name string) (names []string) {
	t.Helper()
	list := declared(file, name)
	if list == nil {
		t.Fatalf("%s has no %s", pluginOptions, name)
	}
	packages := imports(file)
	ast.Inspect(list, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "PluginName" {
			names = append(names, constantsOf(t, source(t, packages[s.X.(*ast.Ident).Name]))["PluginName"])
		}
		return true
	})
	return names
}
