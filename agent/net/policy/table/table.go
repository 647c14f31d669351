package table

import (
	"errors"
	"net/netip"
	"sync"

	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/net/policy/plan"
)

// Table is what the kernel enforces for the pods of a bridge: a table of IPv4, and one of IPv6 once pods with such addresses have
// policies. left reports whether a former process has left one of IPv6; it looks once.
type Table struct {
	inet, inet6 familyTable
	left        func() bool
}

// New returns the table for the pods of a bridge. Nothing is changed before the first Apply.
func New(bridge string) *Table {
	prefix := network.PolicyTables(bridge)
	t := &Table{inet: familyTable{family: inet, prefix: prefix}, inet6: familyTable{family: inet6, prefix: prefix}}
	t.left = sync.OnceValue(t.inet6.exists)
	return t
}

// Apply makes the kernel enforce next, which must not be changed later.
func (t *Table) Apply(next *plan.Table) error {
	err := t.inet.apply(next.Of(netip.Addr.Is4))
	second := next.Of(netip.Addr.Is6)
	if len(second.Ingress)+len(second.Egress) == 0 && !t.inet6.made() && !t.left() {
		return err
	}
	return errors.Join(err, t.inet6.apply(second))
}

// Clear removes all tables, of this process and of former ones.
func (t *Table) Clear() error {
	err := t.inet.clear()
	if !t.inet6.made() && !t.left() {
		return err
	}
	return errors.Join(err, t.inet6.clear())
}

// Intact reports whether the kernel still has what the last Apply made. What somebody removed is made again by the next one.
func (t *Table) Intact() (bool, error) {
	intact, err := t.inet.intact()
	if !intact || err != nil || !t.inet6.made() {
		return intact, err
	}
	return t.inet6.intact()
}
