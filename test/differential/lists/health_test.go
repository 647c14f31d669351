package lists

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint"
)

// upstreamsChecks are the lines that upstream's end-to-end test of health handlers wants to see, by the variable that has them.
func upstreamsChecks(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	inspect(t, source(t, "k8s.io/kubernetes/test/e2e/apimachinery"), func(n ast.Node) {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 || !strings.HasPrefix(spec.Names[0].Name, "required") {
			return
		}
		if call, ok := spec.Values[0].(*ast.CallExpr); ok {
			for _, arg := range call.Args {
				if line, ok := literal(arg); ok {
					found[spec.Names[0].Name] = append(found[spec.Names[0].Name], line)
				}
			}
		}
	})
	return found
}

// TestHealthChecks: health endpoints name the checks that upstream's name.
func TestHealthChecks(t *testing.T) {
	client := started(t, setpoint.Config{InMemory: true})
	upstream := upstreamsChecks(t)
	for path, variable := range map[string]string{
		"/healthz": "requiredHealthzChecks", "/livez": "requiredLivezChecks", "/readyz": "requiredReadyzChecks",
	} {
		want := append(upstream[variable], "[+]poststarthook/storage-readiness ok")
		if len(want) < 20 {
			t.Fatalf("%s has %q in upstream's test", variable, want)
		}
		var text []byte
		await(t, func() (ok bool) {
			var err error
			text, err = client.CoreV1().RESTClient().Get().AbsPath(path).Param("verbose", "1").DoRaw(t.Context())
			return err == nil
		})
		for _, line := range want {
			if !slices.Contains(strings.Split(string(text), "\n"), line) {
				t.Errorf("%s?verbose lacks %s", path, line)
			}
		}
	}
}
