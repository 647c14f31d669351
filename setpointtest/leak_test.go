package setpointtest_test

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// TestNothingIsLeft: when a test has ended, so have all goroutines. A bubble proves it: it cannot end before.
func TestNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{Nodes: 2})
		c.Apply("testdata/web.yaml")
		c.Eventually("deployment/web", setpointtest.Available)
		c.Fork(t).Delete("deployment/web")
	})
	stacks := make([]byte, 1<<20)
	for _, stack := range strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n") {
		if strings.Contains(stack, "synctest bubble") {
			t.Errorf("left: %s", stack)
		}
	}
}
