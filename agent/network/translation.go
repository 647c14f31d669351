package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

const (
	translationTable = "setpoint-services"
	// elementsPerMessage keeps a message of set elements below the 64 KiB that its length can tell.
	elementsPerMessage = 400
	// translationBytesMax is the largest transaction: about 100,000 endpoints. A larger one is refused whole.
	translationBytesMax = 64 << 20
)

// Service is one port of a Service: what is sent to Address goes to one of Endpoints, and is refused without any.
type Service struct {
	// Protocol is IANA's number.
	Protocol  uint8
	Address   netip.AddrPort
	Endpoints []netip.AddrPort
}

// Equal compares all fields; the order of endpoints counts.
func (s Service) Equal(t Service) bool {
	return s.Protocol == t.Protocol && s.Address == t.Address && slices.Equal(s.Endpoints, t.Endpoints)
}

// Translation makes the addresses of Services lead somewhere, for pods and for the machine itself. Agents of one
// network namespace share it: they want the same. mu guards current, which is what the kernel was told last.
type Translation struct {
	mu      sync.Mutex
	current []Service
}

// SetServices replaces all that was translated before, in one transaction: no packet meets half of it. Connections
// that are there stay with their endpoint; what is sent by UDP leaves an endpoint that is gone.
func (t *Translation) SetServices(services []Service) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	conn, err := nftables.New(nftables.WithSockOptions(largeBuffers))
	if err != nil {
		return fmt.Errorf("nftables: %w", err)
	}
	if err := newRuleset(conn, translationTable).fill(services); err != nil {
		return fmt.Errorf("nftables table %s: %w", translationTable, err)
	}
	if err := conn.Flush(); err != nil {
		return fmt.Errorf("nftables table %s: %w", translationTable, err)
	}
	gone := goneEndpoints(t.current, services)
	t.current = services
	return forgetFlows(gone)
}

func largeBuffers(conn *netlink.Conn) error {
	return errors.Join(conn.SetWriteBuffer(translationBytesMax), conn.SetReadBuffer(translationBytesMax))
}

// ruleset is the table in the making. Services with equally many endpoints share a chain of one rule, which draws a
// number and looks the endpoint up: a Service is elements of maps, and no packet walks a list of Services.
type ruleset struct {
	conn  *nftables.Conn
	table *nftables.Table
}

// newRuleset begins with an empty table: added, deleted, added, it replaces whatever there was.
func newRuleset(conn *nftables.Conn, name string) *ruleset {
	table := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: name}
	conn.AddTable(table)
	conn.DelTable(table)
	return &ruleset{conn, conn.AddTable(table)}
}

func (r *ruleset) fill(services []Service) error {
	byCount := map[int][]Service{}
	for _, s := range services {
		byCount[len(s.Endpoints)] = append(byCount[len(s.Endpoints)], s)
	}
	refused := byCount[0]
	delete(byCount, 0)
	var err error
	for _, count := range slices.Sorted(maps.Keys(byCount)) {
		err = errors.Join(err, r.spread(count, byCount[count]))
	}
	return errors.Join(err, r.translate(services), r.returnToPods(services), r.refuse(refused))
}

func spreadChain(count int) string { return fmt.Sprintf("to-%d", count) }

// spread makes the chain of Services that have count endpoints.
func (r *ruleset) spread(count int, services []Service) error {
	set := &nftables.Set{Table: r.table, Name: fmt.Sprintf("endpoints-%d", count), IsMap: true, Concatenation: true,
		KeyType:  nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeInetProto, nftables.TypeInetService, nftables.TypeInteger),
		DataType: destinationType()}
	var elements []nftables.SetElement
	for _, s := range services {
		for i, endpoint := range s.Endpoints {
			key := binary.NativeEndian.AppendUint32(s.key(), uint32(i))
			elements = append(elements, nftables.SetElement{Key: key, Val: concatenated(endpoint)})
		}
	}
	if err := r.addSet(set, elements); err != nil {
		return err
	}
	chain := r.conn.AddChain(&nftables.Chain{Name: spreadChain(count), Table: r.table})
	draw := &expr.Numgen{Register: indexRegister, Modulus: uint32(count), Type: unix.NFT_NG_RANDOM}
	r.addRule(chain, append(append(loadKey(), draw), lead(set)...)...)
	return nil
}

// translate sends what begins a connection to a Service into the chain of its number of endpoints.
func (r *ruleset) translate(services []Service) error {
	set := &nftables.Set{
		Table:         r.table,
		Name:          "services",
		IsMap:         true,
		Concatenation: true,
		KeyType:       serviceKey(),
		DataType:      nftables.TypeVerdict,
	}
	var elements []nftables.SetElement
	for _, s := range services {
		if count := len(s.Endpoints); count > 0 {
			verdict := &expr.Verdict{Kind: expr.VerdictGoto, Chain: spreadChain(count)}
			elements = append(elements, nftables.SetElement{Key: s.key(), VerdictData: verdict})
		}
	}
	if err := r.addSet(set, elements); err != nil {
		return err
	}
	for name, hook := range map[string]*nftables.ChainHook{"prerouting": nftables.ChainHookPrerouting, "output": nftables.ChainHookOutput} {
		chain := r.conn.AddChain(
			&nftables.Chain{
				Name:     name,
				Table:    r.table,
				Type:     nftables.ChainTypeNAT,
				Hooknum:  hook,
				Priority: nftables.ChainPriorityNATDest,
			},
		)
		r.addRule(
			chain,
			append(loadKey(), &expr.Lookup{SourceRegister: firstRegister, IsDestRegSet: true, SetName: set.Name, SetID: set.ID})...)
	}
	return nil
}

// returnToPods lets the endpoints of Services reach themselves.
func (r *ruleset) returnToPods(services []Service) error {
	own := map[netip.Addr]bool{}
	for _, s := range services {
		for _, endpoint := range s.Endpoints {
			own[endpoint.Addr()] = true
		}
	}
	_, err := r.returnOwn(slices.SortedFunc(maps.Keys(own), netip.Addr.Compare))
	return err
}

// returnOwn lets a pod reach itself by an address that is translated: it takes no packet from its own address, so the gateway's is
// put there.
func (r *ruleset) returnOwn(pods []netip.Addr) (*nftables.Chain, error) {
	set := &nftables.Set{
		Table:         r.table,
		Name:          "itself",
		Concatenation: true,
		KeyType:       nftables.MustConcatSetType(nftables.TypeIPAddr, nftables.TypeIPAddr),
	}
	var elements []nftables.SetElement
	for _, address := range pods {
		elements = append(elements, nftables.SetElement{Key: append(address.AsSlice(), address.AsSlice()...)})
	}
	if err := r.addSet(set, elements); err != nil {
		return nil, err
	}
	chain := r.conn.AddChain(&nftables.Chain{Name: "postrouting", Table: r.table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource})
	r.addRule(chain,
		&expr.Payload{DestRegister: firstRegister, Base: expr.PayloadBaseNetworkHeader, Offset: sourceOffset, Len: addressBytes},
		&expr.Payload{DestRegister: secondRegister, Base: expr.PayloadBaseNetworkHeader, Offset: destinationOffset, Len: addressBytes},
		&expr.Lookup{SourceRegister: firstRegister, SetName: set.Name, SetID: set.ID}, &expr.Masq{})
	return chain, nil
}

// refuse answers for Services without endpoints, so that nobody waits.
func (r *ruleset) refuse(services []Service) error {
	set := &nftables.Set{Table: r.table, Name: "refused", Concatenation: true, KeyType: serviceKey()}
	var elements []nftables.SetElement
	for _, s := range services {
		elements = append(elements, nftables.SetElement{Key: s.key()})
	}
	if err := r.addSet(set, elements); err != nil {
		return err
	}
	for name, hook := range map[string]*nftables.ChainHook{"forward": nftables.ChainHookForward, "refuse-output": nftables.ChainHookOutput} {
		chain := r.conn.AddChain(
			&nftables.Chain{
				Name:     name,
				Table:    r.table,
				Type:     nftables.ChainTypeFilter,
				Hooknum:  hook,
				Priority: nftables.ChainPriorityFilter,
			},
		)
		r.addRule(chain, append(loadKey(), &expr.Lookup{SourceRegister: firstRegister, SetName: set.Name, SetID: set.ID},
			&expr.Reject{Type: unix.NFT_REJECT_ICMP_UNREACH, Code: portUnreachable})...)
	}
	return nil
}

func (r *ruleset) addRule(chain *nftables.Chain, expressions ...expr.Any) {
	r.conn.AddRule(&nftables.Rule{Table: r.table, Chain: chain, Exprs: expressions})
}

func (r *ruleset) addSet(set *nftables.Set, elements []nftables.SetElement) error {
	err := r.conn.AddSet(set, nil)
	for some := range slices.Chunk(elements, elementsPerMessage) {
		err = errors.Join(err, r.conn.SetAddElements(set, some))
	}
	return err
}
