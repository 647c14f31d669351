package setpointtest

// KillNode switches a simulated node off, as a power cut does: it renews no Lease and confirms nothing of its pods.
// Simulated nodes are named sim-1, sim-2, ….
func (c *Cluster) KillNode(name string) {
	c.t.Helper()
	c.alive()
	c.mustBeNode("KillNode", name)
	c.current.Load().SwitchNode(name, false)
}

// StartNode switches a node on again that KillNode switched off. It is back within ten seconds.
func (c *Cluster) StartNode(name string) {
	c.t.Helper()
	c.alive()
	c.mustBeNode("StartNode", name)
	c.current.Load().SwitchNode(name, true)
}

func (c *Cluster) mustBeNode(method, name string) {
	c.t.Helper()
	if c.Get("node/"+name) == nil {
		c.t.Fatalf("setpointtest: %s: there is no node %q: Config.Nodes is %d, and they are named sim-1, sim-2, …", method, name, c.config.Nodes)
	}
}
