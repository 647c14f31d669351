package lists

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/cmd/setpoint/upstreamflags"
)

// flagSources are the packages in which upstream's API server defines its flags.
var flagSources = []string{
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options", "k8s.io/kubernetes/pkg/controlplane/apiserver/options",
	"k8s.io/kubernetes/pkg/kubeapiserver/options", "k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds",
	"k8s.io/apiserver/pkg/server/options", "k8s.io/component-base/logs/api/v1", "k8s.io/component-base/metrics",
	"k8s.io/component-base/compatibility",
}

// flagName is what a flag may be called.
var flagName = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)+$|^kubeconfig$|^profiling$`)

// upstreamFlags are the names in calls such as fs.StringVar(&o.Name, "name", ...).
func upstreamFlags(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, folder := range flagSources {
		inspect(t, source(t, folder), func(n ast.Node) {
			call, ok := n.(*ast.CallExpr)
			if !ok || !definesFlag(call) {
				return
			}
			for _, arg := range call.Args[:2] {
				if name, _ := literal(arg); flagName.MatchString(name) {
					found[name] = folder
				}
			}
		})
	}
	return found
}

// definesFlag: the function is a method of a flag set, such as StringVar or Var.
func definesFlag(call *ast.CallExpr) bool {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) < 3 {
		return false
	}
	set, ok := method.X.(*ast.Ident)
	return ok && (set.Name == "fs" || set.Name == "flags" || set.Name == "local") && method.Sel.Name != "MarkDeprecated"
}

// serverFlags are those of `setpoint server`, as docs/reference.md has them.
func serverFlags(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("../../../docs/reference.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## setpoint server\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	for _, row := range regexp.MustCompile("(?m)^\\| `--([a-z0-9-]+)`").FindAllStringSubmatch(section, -1) {
		names = append(names, row[1])
	}
	if !found || len(names) < 20 {
		t.Fatalf("docs/reference.md has %d flags of setpoint server", len(names))
	}
	return names
}

// TestFlags: each flag of upstream's API server is one of `setpoint server`, or has a reason that the command tells.
func TestFlags(t *testing.T) {
	upstream, ours := upstreamFlags(t), serverFlags(t)
	if len(upstream) < 120 {
		t.Fatalf("upstream has %d flags", len(upstream))
	}
	for name, where := range upstream {
		_, explained := upstreamflags.Why(name)
		if here := slices.Contains(ours, name); here == explained {
			t.Errorf("--%s of %s: here %v, explained %v", name, where, here, explained)
		}
	}
}
