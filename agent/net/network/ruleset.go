package network

import (
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// ruleset is a table in the making.
type ruleset struct {
	conn   *nft.Conn
	table  *nftables.Table
	family family
	rules  int
}

// newRuleset begins with an empty table, in place of whatever there was.
func newRuleset(conn *nft.Conn, f family, name string) *ruleset {
	return &ruleset{conn: conn, table: conn.ReplaceTable(&nftables.Table{Family: f.Tables, Name: name}), family: f}
}

// ruleset is for changes of a table that is there.
func (f family) ruleset(conn *nft.Conn, name string) *ruleset {
	return &ruleset{conn: conn, table: &nftables.Table{Family: f.Tables, Name: name}, family: f}
}

func (r *ruleset) addRule(chain *nftables.Chain, expressions ...expr.Any) {
	r.rules++
	r.conn.AddRule(&nftables.Rule{Table: r.table, Chain: chain, Exprs: expressions})
}

func (r *ruleset) addSet(set *nftables.Set, elements []nftables.SetElement) error {
	set.Table = r.table
	return r.conn.AddSet(set, elements)
}

// itselfSet lets a pod reach itself by an address that is translated: it takes no packet from its own address, so the
// gateway's is put there.
const itselfSet = "itself"

func itself(pod netip.Addr) string { return string(append(pod.AsSlice(), pod.AsSlice()...)) }

func (r *ruleset) returnOwn(pods []netip.Addr) (*nftables.Chain, error) {
	set := &nftables.Set{Name: itselfSet, Concatenation: true, KeyType: nftables.MustConcatSetType(r.family.Key, r.family.Key)}
	var elements []nftables.SetElement
	for _, address := range pods {
		elements = append(elements, nftables.SetElement{Key: []byte(itself(address))})
	}
	if err := r.addSet(set, elements); err != nil {
		return nil, err
	}
	chain := r.conn.AddChain(&nftables.Chain{Name: "postrouting", Table: r.table, Type: nftables.ChainTypeNAT,
		Hooknum: nftables.ChainHookPostrouting, Priority: nftables.ChainPriorityNATSource})
	f := r.family
	r.addRule(chain, f.loadSource(f.sourceRegister()), f.loadDestination(f.addressRegister()),
		&expr.Lookup{SourceRegister: f.sourceRegister(), SetName: set.Name}, &expr.Masq{})
	return chain, nil
}

// keepOffLoopback drops what pods send to 127.0.0.0/8: route_localnet would let it in (CVE-2020-8558). The kernel itself takes
// nothing for ::1 from elsewhere.
func (r *ruleset) keepOffLoopback(bridge string) {
	chain := r.conn.AddChain(&nftables.Chain{Name: "loopback", Table: r.table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityRaw})
	toLoopback := append(r.family.Match(r.family.Destination, expr.CmpOpEq, r.family.loopback), &expr.Verdict{Kind: expr.VerdictDrop})
	r.addRule(chain, append(interfaceIs(expr.MetaKeyIIFNAME, bridge), toLoopback...)...)
}

func interfaceIs(key expr.MetaKey, name string) []expr.Any {
	padded := make([]byte, unix.IFNAMSIZ)
	copy(padded, name)
	return []expr.Any{&expr.Meta{Key: key, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: padded}}
}

// begins holds for the first packet of a connection.
func begins() []expr.Any {
	return []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Xor: make([]byte, 4),
			Mask: binaryutil.NativeEndian.PutUint32(expr.CtStateBitNEW)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
	}
}
