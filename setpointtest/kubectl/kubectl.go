package kubectl

import (
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/internal/kubectlrun"
	"github.com/setpoint-io/setpoint/setpointtest"
)

// Run runs kubectl with arguments and returns what it printed. It fails the test if kubectl fails.
func Run(t testing.TB, c *setpointtest.Cluster, args ...string) string {
	t.Helper()
	out, errOut, err := Try(t, c, args...)
	if err != nil {
		t.Fatalf("setpointtest: kubectl %s: %v\n%s", strings.Join(args, " "), err, errOut)
	}
	return out
}

// Try is Run that returns what kubectl printed on standard error, and how it failed.
func Try(t testing.TB, c *setpointtest.Cluster, args ...string) (out, errOut string, err error) {
	t.Helper()
	inside := kubectlrun.Kubectl{Config: c.RESTConfig(), Namespace: c.Namespace(), Dir: t.TempDir()}
	return inside.Run(t.Context(), args...)
}
