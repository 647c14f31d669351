package nodeway

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// beforeMasquerade is in front of all that replaces sources: whoever decides first decides.
const beforeMasquerade = nftables.ChainPriority(99)

// sources is the nftables table of one family, which keeps the sources of packets to nodes. handle is that of the table as it was made
// last, with content in it.
type sources struct {
	family  ipfamily.Family
	name    string
	content content
	handle  uint64
}

type content struct {
	pods  []netip.Prefix
	nodes []netip.Addr
}

// TableName is that of the tables of a bridge.
func TableName(bridge string) string { return "setpoint-" + bridge + "-nodes" }

func (s *sources) table() *nftables.Table {
	return &nftables.Table{Family: s.family.Tables, Name: s.name}
}

// set makes the table anew if it is not as it should be.
func (s *sources) set(pods []netip.Prefix, ways []Way) error {
	var next content
	for _, p := range pods {
		if s.family.Has(p.Addr()) {
			next.pods = append(next.pods, p)
		}
	}
	for _, w := range ways {
		if s.family.Has(w.Node) {
			next.nodes = append(next.nodes, w.Node)
		}
	}
	slices.SortFunc(next.nodes, netip.Addr.Compare)
	if len(next.pods) == 0 || len(next.nodes) == 0 {
		return s.drop()
	}
	handle, err := nft.Handle(s.table())
	if err != nil {
		return s.failed(err)
	}
	if handle != 0 && handle == s.handle && slices.Equal(next.pods, s.content.pods) && slices.Equal(next.nodes, s.content.nodes) {
		return nil
	}
	return s.replace(next)
}

func (s *sources) failed(err error) error { return fmt.Errorf("nftables table %s: %w", s.name, err) }

// drop removes the table, if it is there: a machine without nftables needs none.
func (s *sources) drop() error {
	s.handle = 0
	return nft.DropTable(s.family.Tables, s.name)
}

func (s *sources) replace(next content) error {
	s.handle = 0
	conn, err := nft.Open()
	if err != nil {
		return err
	}
	table := conn.ReplaceTable(s.table())
	nodes := &nftables.Set{Table: table, Name: "nodes", KeyType: s.family.Key}
	var elements []nftables.SetElement
	for _, n := range next.nodes {
		elements = append(elements, nftables.SetElement{Key: n.AsSlice()})
	}
	err = conn.AddSet(nodes, elements)
	chain := conn.AddChain(&nftables.Chain{Table: table, Name: "postrouting", Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityRef(beforeMasquerade)})
	for _, p := range next.pods {
		conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: s.keepSource(p, nodes)})
	}
	if err := errors.Join(err, conn.Flush()); err != nil {
		return s.failed(err)
	}
	if s.handle, err = nft.Handle(s.table()); err != nil {
		return s.failed(err)
	}
	s.content = next
	return nil
}

// keepSource replaces the source of what pods send to nodes by what it is: no later rule replaces it then.
func (s *sources) keepSource(pods netip.Prefix, nodes *nftables.Set) []expr.Any {
	register := ipfamily.FirstRegister
	return slices.Concat(s.family.Match(s.family.Source, expr.CmpOpEq, pods), []expr.Any{
		s.family.Load(register, s.family.Destination),
		&expr.Lookup{SourceRegister: register, SetName: nodes.Name, SetID: nodes.ID},
		s.family.Load(register, s.family.Source),
		&expr.NAT{Type: expr.NATTypeSourceNAT, Family: s.number(), RegAddrMin: register},
	})
}

func (s *sources) number() uint32 {
	if s.family.Tables == nftables.TableFamilyIPv6 {
		return unix.NFPROTO_IPV6
	}
	return unix.NFPROTO_IPV4
}
