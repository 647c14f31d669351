package network

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
)

// Offsets in the IPv4 header, in bytes.
const (
	sourceOffset      = 12
	destinationOffset = 16
	addressBytes      = 4
)

func (n *Network) table() *nftables.Table {
	return &nftables.Table{Family: nftables.TableFamilyIPv4, Name: "setpoint-" + n.config.Bridge}
}

// masquerade rewrites the source of what leaves the cluster: from a pod of ours to anything outside ClusterCIDR.
func (n *Network) masquerade(pods netip.Prefix) error {
	conn, err := nftables.New()
	if err != nil {
		return err
	}
	cluster := n.config.ClusterCIDR
	if !cluster.IsValid() {
		cluster = pods
	}
	// Add, delete, add in one transaction: whatever was there before is replaced.
	conn.AddTable(n.table())
	conn.DelTable(n.table())
	table := conn.AddTable(n.table())
	chain := conn.AddChain(&nftables.Chain{
		Name: "postrouting", Table: table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource,
	})
	rule := append(matchPrefix(sourceOffset, expr.CmpOpEq, pods), matchPrefix(destinationOffset, expr.CmpOpNeq, cluster)...)
	conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(rule, &expr.Masq{})})
	return conn.Flush()
}

func matchPrefix(offset uint32, op expr.CmpOp, prefix netip.Prefix) []expr.Any {
	network := ipNet(prefix.Masked())
	return []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: addressBytes},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: addressBytes, Mask: network.Mask, Xor: make([]byte, addressBytes)},
		&expr.Cmp{Op: op, Register: 1, Data: network.IP},
	}
}

func (n *Network) removeTable() error {
	conn, err := nftables.New()
	if err != nil {
		return nil // a machine without nftables has no table of ours
	}
	conn.DelTable(n.table())
	if err := conn.Flush(); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("nftables table %s: %w", n.table().Name, err)
	}
	return nil
}
