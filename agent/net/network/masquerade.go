package network

import (
	"errors"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

func (n *Network) table() string { return "setpoint-" + n.config.Bridge }

// masquerade rewrites the source of what leaves the cluster: from a pod of ours to anything outside the range of all pods.
func (n *Network) masquerade(f family, pods, cluster netip.Prefix) error {
	conn, err := nft.Open()
	if err != nil {
		return err
	}
	if !cluster.IsValid() {
		cluster = pods
	}
	r := newRuleset(conn, f, n.table())
	chain := conn.AddChain(&nftables.Chain{
		Name: "postrouting", Table: r.table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
	})
	leaves := join(f.Match(f.Source, expr.CmpOpEq, pods), f.Match(f.Destination, expr.CmpOpNeq, cluster))
	r.addRule(chain, append(leaves, &expr.Masq{})...)
	return conn.Flush()
}

func (n *Network) removeTables() error {
	return errors.Join(nft.DropTable(inet.Tables, n.table()), nft.DropTable(inet6.Tables, n.table()))
}
