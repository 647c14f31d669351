package network

import (
	"cmp"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
)

const nodesSet = "nodes"

func tunnelTable(bridge string) string {
	return "setpoint-" + cmp.Or(bridge, DefaultBridge) + "-vxlan"
}

// guardTunnel keeps others out of the tunnel: what comes in by it passes for a pod of another node, and VXLAN itself
// asks nobody who he is. Packets are taken from nodes that are reached by it, and no pod sends any, to this node or another.
func guardTunnel(bridge string, nodes []netip.Addr) error {
	conn, err := nft.Open()
	if err != nil {
		return err
	}
	r := newRuleset(conn, inet, tunnelTable(bridge))
	set := &nftables.Set{Name: nodesSet, KeyType: nftables.TypeIPAddr}
	var elements []nftables.SetElement
	for _, node := range nodes {
		elements = append(elements, nftables.SetElement{Key: node.AsSlice()})
	}
	if err := r.addSet(set, elements); err != nil {
		return err
	}
	fromPods := interfaceIs(expr.MetaKeyIIFNAME, cmp.Or(bridge, DefaultBridge))
	drop := &expr.Verdict{Kind: expr.VerdictDrop}
	input := r.filter("input", nftables.ChainHookInput)
	r.addRule(input, append(append(toTunnel(), fromPods...), drop)...)
	r.addRule(input, append(toTunnel(), inet.loadSource(firstRegister),
		&expr.Lookup{SourceRegister: firstRegister, SetName: set.Name, Invert: true}, drop)...)
	forward := r.filter("forward", nftables.ChainHookForward)
	r.addRule(forward, append(append(toTunnel(), fromPods...),
		inet.loadDestination(firstRegister),
		&expr.Lookup{SourceRegister: firstRegister, SetName: set.Name}, drop)...)
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("nftables table %s: %w", r.table.Name, err)
	}
	return nil
}

func (r *ruleset) filter(name string, hook *nftables.ChainHook) *nftables.Chain {
	return r.conn.AddChain(&nftables.Chain{
		Name: name, Table: r.table, Type: nftables.ChainTypeFilter, Hooknum: hook, Priority: nftables.ChainPriorityFilter,
	})
}

// toTunnel holds for VXLAN packets of ours.
func toTunnel() []expr.Any {
	return append(ipfamily.ProtocolIs(unix.IPPROTO_UDP),
		ipfamily.LoadPort(firstRegister),
		&expr.Cmp{Op: expr.CmpOpEq, Register: firstRegister, Data: binaryutil.BigEndian.PutUint16(plan.VXLANPort)})
}

func unguardTunnel(bridge string) error { return nft.DropTable(inet.Tables, tunnelTable(bridge)) }
