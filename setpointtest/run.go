package setpointtest

import (
	"fmt"
	"runtime"

	"github.com/setpoint-io/setpoint/internal/testclient"
)

// Runnable is a program under test; controller-runtime's Manager is one.
type Runnable = testclient.Runnable

// RunnableFunc makes a function a Runnable.
type RunnableFunc = testclient.RunnableFunc

// Run runs a program until the test ends; an error that it returns before fails the test. For a Manager it returns
// when its controllers run, and, if the Config has Webhooks, when something serves them.
func (c *Cluster) Run(r Runnable) {
	c.t.Helper()
	c.alive()
	p := c.programs.Run(c.ctx, r, callerLine())
	c.t.Cleanup(func() { c.should(p.Stop()) })
	c.must(p.AwaitElected(c.timeout, c.hooks, func() string { return c.refused.WaitFor(c.faults.heldKinds()) }))
}

// callerLine is the line of the test that called the method which calls this.
func callerLine() string {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return "an unknown line"
	}
	return fmt.Sprintf("%s:%d", file, line)
}
