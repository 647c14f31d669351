package beside

import (
	"fmt"
	"runtime"

	"github.com/setpoint-io/setpoint/internal/testclient"
)

// Runnable is a program under test; controller-runtime's Manager is one.
type Runnable = testclient.Runnable

// RunnableFunc makes a function a Runnable.
type RunnableFunc = testclient.RunnableFunc

// WebhookServer is where a program under test serves its webhooks: controller-runtime's webhook.Options has the
// same fields.
type WebhookServer = testclient.WebhookServer

// Run runs a program until the test ends; an error that it returns before fails the test. For a Manager it returns
// when its controllers run, and, if the Config has Webhooks, when something serves them.
func (c *Cluster) Run(r Runnable) {
	c.t.Helper()
	c.alive()
	_, file, line, _ := runtime.Caller(1)
	p := c.programs.Run(c.ctx, r, fmt.Sprintf("%s:%d", file, line))
	c.t.Cleanup(func() { c.should(p.Stop()) })
	c.must(p.AwaitElected(c.timeout, c.hooks, func() string { return c.refused.WaitFor(nil) }))
}

// WebhookServer tells where the program under test must serve the webhooks of the Config.
func (c *Cluster) WebhookServer() WebhookServer {
	c.t.Helper()
	c.alive()
	if c.hooks == nil {
		c.t.Fatal("beside: WebhookServer needs Config.Webhooks: without them the cluster calls no webhooks")
	}
	return *c.hooks
}

// HasWebhooks reports whether the cluster calls webhooks at WebhookServer: the Config lists some.
func (c *Cluster) HasWebhooks() bool { return c.hooks != nil }

// install makes what the Config lists.
func (c *Cluster) install() {
	c.t.Helper()
	listed, err := testclient.Read(c.config.CRDs, c.config.Webhooks)
	c.must(err)
	if listed.HasWebhooks() {
		c.hooks, err = testclient.OpenWebhooks(c.t.TempDir())
		c.must(err)
	}
	c.must(c.client().Install(c.ctx, listed, c.hooks))
}
