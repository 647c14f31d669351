package main

import (
	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// forbid makes a firewall in the script's network namespace that drops what comes in from others, or takes it away.
func forbid(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 || args[0] != "input" && args[0] != "nothing" {
		ts.Fatalf("usage: forbid input|nothing")
	}
	conn, err := nft.Open()
	ts.Check(err)
	table := conn.ReplaceTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "guard"})
	if args[0] == "nothing" {
		conn.DelTable(table)
		ts.Check(conn.Flush())
		return
	}
	drop, accept := nftables.ChainPolicyDrop, &expr.Verdict{Kind: expr.VerdictAccept}
	chain := conn.AddChain(&nftables.Chain{
		Table: table, Name: "input", Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookInput,
		Priority: nftables.ChainPriorityFilter, Policy: &drop,
	})
	ofItself := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte("lo\x00")}, accept,
	}
	conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: ofItself})
	conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: append(ipfamily.InState(expr.CtStateBitESTABLISHED), accept)})
	ts.Check(conn.Flush())
}
