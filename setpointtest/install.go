package setpointtest

import "github.com/setpoint-io/setpoint/internal/testclient"

// WebhookServer is where a program under test serves its webhooks: controller-runtime's webhook.Options has the
// same fields.
type WebhookServer = testclient.WebhookServer

// WebhookServer tells where the program under test must serve the webhooks of the Config.
func (c *Cluster) WebhookServer() WebhookServer {
	c.t.Helper()
	c.alive()
	if c.hooks == nil {
		c.t.Fatal("setpointtest: WebhookServer needs Config.Webhooks: without them the cluster calls no webhooks")
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
		c.openWebhooks()
	}
	c.must(c.client().Install(c.ctx, listed, c.hooks))
}

// openWebhooks chooses a port, and makes a certificate for it.
func (c *Cluster) openWebhooks() {
	c.t.Helper()
	if c.bubble {
		c.t.Fatal("setpointtest: webhooks need a port, for which a bubble cannot wait: leave Config.Webhooks empty in synctest.Test")
	}
	hooks, err := testclient.OpenWebhooks(c.t.TempDir())
	c.must(err)
	c.hooks = hooks
}
