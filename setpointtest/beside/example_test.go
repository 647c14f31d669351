package beside_test

import (
	"flag"
	"fmt"
	"testing"
	"time"

	setpointtest "github.com/setpoint-io/setpoint/setpointtest/beside"
)

// example runs the body of a test, as often as -count and -cpu say, and without -v, whose lines would count as output.
func example(test func(t *testing.T)) {
	verbose := flag.Lookup("test.v").Value
	was := verbose.String()
	_ = verbose.Set("false")
	defer func() { _ = verbose.Set(was) }()
	testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "Example", F: test}})
}

// The import says that the control plane runs beside the test: import setpointtest "github.com/setpoint-io/setpoint/setpointtest/beside".
// Without /beside the same text runs it inside.
func Example() {
	name := ""
	example(func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{Nodes: 2})
		c.Apply("../testdata/web.yaml")
		c.Eventually("deployment/web", setpointtest.Available)
		c.KillNode("sim-1")
		c.Advance(7 * time.Minute) // 40 seconds until it counts as lost, five minutes until its pods are evicted
		name = c.Eventually("deployment/web", setpointtest.Available).GetName()
	})
	fmt.Println(name, "is available again")
	// Output: web is available again
}
