package hostfirewall

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

const (
	inputChain   = "input"
	fromPodChain = "from-pod"
	openSet      = "open"
	// openMax bounds a transaction; with more ports the rules stay as they are.
	openMax = 4096
)

var errTooMany = fmt.Errorf("more than %d ports of the node would be open to pods", openMax)

// families have IANA's number of the protocol that tells of errors.
var families = map[ipfamily.Family]byte{ipfamily.V4: unix.IPPROTO_ICMP, ipfamily.V6: unix.IPPROTO_ICMPV6}

// present are the families that this machine has. A pod reaches the machine by addresses of the link, of IPv6, whatever ranges the
// cluster has.
func present() []ipfamily.Family {
	if network.HasIPv6() {
		return []ipfamily.Family{ipfamily.V4, ipfamily.V6}
	}
	return []ipfamily.Family{ipfamily.V4}
}

// Table is what the kernel enforces for the pods of a bridge. mu guards what it has.
type Table struct {
	bridge string
	mu     sync.Mutex
	has    *rules
}

// rules are what Apply was told.
type rules struct {
	pods []netip.Prefix
	open []Port
}

func (r *rules) equal(pods []netip.Prefix, open []Port) bool {
	return r != nil && slices.Equal(r.pods, pods) && slices.Equal(r.open, open)
}

// NewTable returns the table for the pods of a bridge. Nothing is changed before the first Apply.
func NewTable(bridge string) *Table { return &Table{bridge: bridge} }

// Apply implements Network. The tables are small and are made anew, each in one transaction.
func (t *Table) Apply(pods []netip.Prefix, open []Port) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.has.equal(pods, open) {
		return nil
	}
	if len(open) > openMax {
		return errTooMany
	}
	t.has = nil
	var errs []error
	for _, family := range present() {
		errs = append(errs, t.replace(family, ofFamily(family, pods), open))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("nftables table %s: %w", t.name(), err)
	}
	t.has = &rules{slices.Clone(pods), slices.Clone(open)}
	return nil
}

// replace makes the table of one family anew.
func (t *Table) replace(family ipfamily.Family, pods []netip.Prefix, open []Port) error {
	conn, err := nft.Open()
	if err != nil {
		return err
	}
	err = (&ruleset{conn: conn, family: family, icmp: families[family]}).fill(t.name(), t.bridge, pods, open)
	return errors.Join(err, conn.Flush())
}

// Exists implements Network.
func (t *Table) Exists() (bool, error) {
	for _, family := range present() {
		if found, err := t.isFound(family); err != nil || !found {
			return false, err
		}
	}
	return true, nil
}

// Intact implements Network.
func (t *Table) Intact() (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	exists, err := t.Exists()
	if err != nil {
		return false, err
	}
	if !exists {
		t.has = nil
	}
	return t.has != nil, nil
}

func (t *Table) isFound(family ipfamily.Family) (bool, error) {
	rules, err := nft.CountRules(&nftables.Table{Family: family.Tables, Name: t.name()})
	return rules[inputChain] > 0 && rules[fromPodChain] > 0, err
}

// Clear removes what this agent or another one has made; without any it does nothing.
func (t *Table) Clear() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.has = nil
	var errs []error
	for family := range families {
		errs = append(errs, nft.DropTable(family.Tables, t.name()))
	}
	return errors.Join(errs...)
}

func (t *Table) name() string { return network.HostTable(t.bridge) }

func ofFamily(family ipfamily.Family, all []netip.Prefix) (some []netip.Prefix) {
	for _, p := range all {
		if family.Has(p.Addr()) {
			some = append(some, p)
		}
	}
	return some
}

// ruleset is the table of one family in the making.
type ruleset struct {
	conn   *nft.Conn
	table  *nftables.Table
	family ipfamily.Family
	icmp   byte
}

// fill begins with an empty table, in place of whatever there was.
func (r *ruleset) fill(name, bridge string, pods []netip.Prefix, open []Port) error {
	r.table = r.conn.ReplaceTable(&nftables.Table{Family: r.family.Tables, Name: name})
	set := &nftables.Set{Table: r.table, Name: openSet, Concatenation: true,
		KeyType: nftables.MustConcatSetType(nftables.TypeInetProto, nftables.TypeInetService)}
	err := r.conn.AddSet(set, elements(open))
	r.judge(r.conn.AddChain(&nftables.Chain{Name: fromPodChain, Table: r.table}))
	input := r.conn.AddChain(&nftables.Chain{Name: inputChain, Table: r.table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter})
	jump := &expr.Verdict{Kind: expr.VerdictJump, Chain: fromPodChain}
	r.add(input, append(from(bridge), jump)...)
	for _, p := range pods {
		r.add(input, append(r.family.Match(r.family.Source, expr.CmpOpEq, p), jump)...)
	}
	return err
}

// judge makes the rules for what pods send.
func (r *ruleset) judge(chain *nftables.Chain) {
	accept := &expr.Verdict{Kind: expr.VerdictAccept}
	r.add(chain, append(ipfamily.InState(expr.CtStateBitESTABLISHED|expr.CtStateBitRELATED), accept)...)
	r.add(chain, append(ipfamily.ProtocolIs(r.icmp), accept)...)
	r.add(chain,
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: ipfamily.FirstRegister},
		ipfamily.LoadPort(ipfamily.FirstRegister+1),
		&expr.Lookup{SourceRegister: ipfamily.FirstRegister, SetName: openSet}, accept)
	r.add(chain, append(ipfamily.ProtocolIs(unix.IPPROTO_TCP), &expr.Reject{Type: unix.NFT_REJECT_TCP_RST})...)
	unreachable := &expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: 3} // RFC 792: port unreachable
	if r.icmp == unix.IPPROTO_ICMPV6 {
		unreachable.Code = 4 // RFC 4443: port unreachable
	}
	r.add(chain, unreachable)
}

func (r *ruleset) add(chain *nftables.Chain, expressions ...expr.Any) {
	r.conn.AddRule(&nftables.Rule{Table: r.table, Chain: chain, Exprs: expressions})
}

// from holds for packets that come by an interface.
func from(name string) []expr.Any {
	return []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: ipfamily.FirstRegister},
		&expr.Cmp{Op: expr.CmpOpEq, Register: ipfamily.FirstRegister, Data: append([]byte(name), 0)},
	}
}

// elements are keys as the rule loads them: each part fills its register with zeros.
func elements(open []Port) []nftables.SetElement {
	all := make([]nftables.SetElement, len(open))
	for i, p := range open {
		all[i].Key = append(binary.BigEndian.AppendUint16([]byte{p.Protocol, 0, 0, 0}, p.Number), 0, 0)
	}
	return all
}
