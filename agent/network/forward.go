package network

import (
	"bytes"
	"errors"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"

	"github.com/setpoint-io/setpoint/agent/network/nft"
)

// acceptForwarding lets the pods' traffic pass where something else made the machine refuse to forward: Docker sets
// the policy of iptables' FORWARD chain to drop, and a verdict in a table of our own cannot overrule that.
func (n *Network) acceptForwarding(f family) error {
	conn, err := nft.Open()
	if err != nil {
		return err
	}
	chain, _, err := n.withoutForwarding(conn, f)
	if chain == nil || err != nil {
		return err
	}
	for _, direction := range []expr.MetaKey{expr.MetaKeyIIFNAME, expr.MetaKeyOIFNAME} {
		conn.InsertRule(&nftables.Rule{Table: chain.Table, Chain: chain, UserData: n.mark(), Exprs: []expr.Any{
			&expr.Meta{Key: direction, Register: 1},
			// With its end, as iptables compares names: it can show the rule then.
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: append([]byte(n.config.Bridge), 0)},
			&expr.Counter{},
			&expr.Verdict{Kind: expr.VerdictAccept},
		}})
	}
	return conn.Flush()
}

// removeForwarding takes our rules out of those chains.
func (n *Network) removeForwarding() error {
	var errs []error
	for _, f := range []family{inet, inet6} {
		conn, err := nft.Open()
		if err != nil {
			return nil // a machine without nftables has no rules of ours
		}
		_, _, err = n.withoutForwarding(conn, f)
		errs = append(errs, err, conn.Flush())
	}
	return errors.Join(errs...)
}

// withoutForwarding finds the chain and plans the deletion of our rules, count of them; the chain is nil where there is none.
func (n *Network) withoutForwarding(conn *nft.Conn, f family) (chain *nftables.Chain, count int, err error) {
	chain, rules, err := n.forwarding(conn, f)
	for _, rule := range rules {
		err = errors.Join(err, conn.DelRule(rule))
	}
	return chain, len(rules), err
}

// forwarding finds the chain, which is nil where there is none, and our rules in it.
func (n *Network) forwarding(conn *nft.Conn, f family) (chain *nftables.Chain, own []*nftables.Rule, err error) {
	chains, err := conn.ListChainsOfTableFamily(f.Tables)
	if err = ignoreMissing("chains of iptables", err); err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(chains, func(c *nftables.Chain) bool { return c.Table.Name == "filter" && c.Name == "FORWARD" })
	if i < 0 {
		return nil, nil, nil
	}
	rules, err := conn.GetRules(chains[i].Table, chains[i])
	for _, rule := range rules {
		if bytes.Equal(rule.UserData, n.mark()) {
			own = append(own, rule)
		}
	}
	return chains[i], own, err
}

// mark is the comment by which we know our rules.
func (n *Network) mark() []byte {
	return userdata.AppendString(nil, userdata.TypeComment, "setpoint pods of "+n.config.Bridge)
}
