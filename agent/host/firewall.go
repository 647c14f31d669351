package host

import (
	"github.com/setpoint-io/setpoint/agent/net/hostfirewall"
	"github.com/setpoint-io/setpoint/agent/net/network"
)

// hostFirewall keeps pods from ports of this machine; nil if they may reach all of them, and what an agent with other settings has
// left is removed. With a remote runtime, whose network is a CNI plugin's, there is none.
func (c NodeConfig) hostFirewall() hostfirewall.Network {
	table := hostfirewall.NewTable(network.DefaultBridge)
	if !c.Settings.OpenHost {
		return table
	}
	if err := table.Clear(); err != nil {
		c.Logger.Warn("pods are still kept from ports of this node", "err", err)
	}
	return nil
}
