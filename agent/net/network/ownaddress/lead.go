package ownaddress

import (
	"errors"
	"maps"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// TableName is that of the table which leads to the port.
const TableName = "setpoint-own-address"

// hooks are where packets of pods and of other machines are led, and those of this machine.
var hooks = map[string]*nftables.ChainHook{"prerouting": nftables.ChainHookPrerouting, "output": nftables.ChainHookOutput}

// protocols are led, in a rule each.
var protocols = []byte{unix.IPPROTO_UDP, unix.IPPROTO_TCP}

// priority is before the translation of Services and of host ports, which might be made to lead the port elsewhere.
const priority = -110

func table() *nftables.Table { return &nftables.Table{Family: ipfamily.V4.Tables, Name: TableName} }

// lead makes the table that the wanted address needs, with the shares of who sends there, or none. mu is held.
func (h *Holder) lead() error {
	if whole, err := h.leads(); whole && err == nil {
		return nil
	}
	if !h.wanted.IsValid() || h.from == h.to {
		h.led = h.wanted
		return nft.DropTable(ipfamily.V4.Tables, TableName)
	}
	conn, err := nft.Open()
	if err != nil {
		return err
	}
	conn.ReplaceTable(table())
	for name, hook := range hooks {
		h.addChain(conn, name, hook)
	}
	if err := errors.Join(h.addShares(conn), conn.Flush()); err != nil {
		return err
	}
	h.led = h.wanted
	return nil
}

// leads reports whether the kernel has the table as this Holder has made it. mu is held.
func (h *Holder) leads() (bool, error) {
	if h.led != h.wanted {
		return false, nil
	}
	rules, err := nft.CountRules(table())
	if err != nil {
		return false, err
	}
	want := map[string]int{}
	if h.wanted.IsValid() && h.from != h.to {
		want[shareChain] = len(shares) * len(h.ports())
		for name := range hooks {
			want[name] = len(protocols)
		}
	}
	return maps.Equal(rules, want), nil
}

func (h *Holder) addChain(conn *nft.Conn, name string, hook *nftables.ChainHook) {
	chain := conn.AddChain(&nftables.Chain{
		Name: name, Table: table(), Type: nftables.ChainTypeNAT, Hooknum: hook, Priority: nftables.ChainPriorityRef(priority),
	})
	for _, protocol := range protocols {
		conn.AddRule(&nftables.Rule{Table: table(), Chain: chain, Exprs: h.rule(protocol)})
	}
}

// rule leads what is sent to the address at one port to its other port.
func (h *Holder) rule(protocol byte) []expr.Any {
	const first, second = ipfamily.FirstRegister, ipfamily.FirstRegister + 1
	return append(h.sentTo(protocol, h.from),
		&expr.Immediate{Register: first, Data: h.wanted.AsSlice()},
		&expr.Immediate{Register: second, Data: binaryutil.BigEndian.PutUint16(h.to)},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: first, RegProtoMin: second, Specified: true},
	)
}
