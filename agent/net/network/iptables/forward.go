package iptables

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"

	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// rulesOfBridge are one for each direction.
const rulesOfBridge = 2

// Forward is the chain for the pods of a bridge, by its name.
type Forward string

// Accept lets the pods' traffic pass where something else made the machine refuse to forward: Docker sets the policy of iptables' FORWARD
// chain to drop, and a verdict in a table of our own cannot overrule that.
func (bridge Forward) Accept(family nftables.TableFamily) error {
	conn, err := nft.Open()
	if err != nil {
		return err
	}
	chain, _, err := bridge.without(conn, family)
	if chain == nil || err != nil {
		return err
	}
	for _, direction := range []expr.MetaKey{expr.MetaKeyIIFNAME, expr.MetaKeyOIFNAME} {
		conn.InsertRule(&nftables.Rule{Table: chain.Table, Chain: chain, UserData: bridge.mark(), Exprs: []expr.Any{
			&expr.Meta{Key: direction, Register: 1},
			// With its end, as iptables compares names: it can show the rule then.
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: append([]byte(bridge), 0)},
			&expr.Counter{},
			&expr.Verdict{Kind: expr.VerdictAccept},
		}})
	}
	return conn.Flush()
}

// Accepts reports whether the chain has our rules, if it is there.
func (bridge Forward) Accepts(family nftables.TableFamily) (bool, error) {
	conn, err := nft.Open()
	if err != nil {
		return false, err
	}
	chain, rules, err := bridge.find(conn, family)
	return chain == nil || len(rules) == rulesOfBridge, err
}

// Remove takes our rules out of those chains; removed says what there was.
func (bridge Forward) Remove() (removed []string, err error) {
	for _, family := range []nftables.TableFamily{nftables.TableFamilyIPv4, nftables.TableFamilyIPv6} {
		conn, err := nft.Open()
		if err != nil {
			return nil, nil //nolint:nilerr // a machine without nftables has no rules of ours
		}
		_, count, err := bridge.without(conn, family)
		if err = errors.Join(err, conn.Flush()); err != nil {
			return removed, fmt.Errorf("rules of iptables: %w", err)
		}
		if count > 0 {
			removed = append(removed, fmt.Sprintf("%d rules in iptables' FORWARD chain", count))
		}
	}
	return removed, nil
}

// without finds the chain and plans the deletion of our rules, count of them; the chain is nil where there is none.
func (bridge Forward) without(conn *nft.Conn, family nftables.TableFamily) (chain *nftables.Chain, count int, err error) {
	chain, rules, err := bridge.find(conn, family)
	for _, rule := range rules {
		err = errors.Join(err, conn.DelRule(rule))
	}
	return chain, len(rules), err
}

// find finds the chain, which is nil where there is none, and our rules in it.
func (bridge Forward) find(conn *nft.Conn, family nftables.TableFamily) (chain *nftables.Chain, own []*nftables.Rule, err error) {
	chains, err := conn.ListChainsOfTableFamily(family)
	if err = nft.IgnoreMissing("chains of iptables", err); err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(chains, func(c *nftables.Chain) bool { return c.Table.Name == "filter" && c.Name == "FORWARD" })
	if i < 0 {
		return nil, nil, nil
	}
	rules, err := conn.GetRules(chains[i].Table, chains[i])
	for _, rule := range rules {
		if bytes.Equal(rule.UserData, bridge.mark()) {
			own = append(own, rule)
		}
	}
	return chains[i], own, err
}

// mark is the comment by which we know our rules.
func (bridge Forward) mark() []byte {
	return userdata.AppendString(nil, userdata.TypeComment, comment+string(bridge))
}

const comment = "setpoint pods of "

// IsOwn reports whether a rule is one of ours, for the pods of any bridge.
func IsOwn(rule *nftables.Rule) bool { return bytes.Contains(rule.UserData, []byte(comment)) }
