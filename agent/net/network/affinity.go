package network

import (
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/ipfamily"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

const (
	affinitySet = "clients"
	// affinityMax is how many clients of Services with session affinity are remembered; further ones go to any endpoint.
	affinityMax = 1 << 17
)

// affinitySet has who was led where: client, address and port of the Service, address and port of the endpoint. That a map would lead
// from the first three to the others needs fewer rules, but nft cannot list rules that use what a map leads to as a key: it ends
// abnormally, and so does firewalld.
func (r *ruleset) affinitySet() *nftables.Set {
	key, port := r.family.Key, nftables.TypeInetService
	return &nftables.Set{
		Table: r.table, Name: affinitySet, Concatenation: true, Dynamic: true, HasTimeout: true, Size: affinityMax,
		KeyType: nftables.MustConcatSetType(key, key, port, key, port),
	}
}

// Registers of a key of affinitySet; the client's comes first.
func (f family) clientOf() uint32     { return firstOfAll }
func (f family) wantsAddress() uint32 { return f.clientOf() + f.Words() }
func (f family) wantsPort() uint32    { return f.wantsAddress() + f.Words() }
func (f family) getsAddress() uint32  { return f.wantsPort() + 1 }
func (f family) getsPort() uint32     { return f.getsAddress() + f.Words() }

// addAffinity adds two rules for each endpoint: the first ones lead the clients that it has, the others draw those that it gets. A
// client that cannot be remembered passes the rule that drew it.
func (r *ruleset) addAffinity(chain *nftables.Chain, s spread) {
	ends := s.ends(r.family)
	for _, end := range ends {
		known := &expr.Lookup{SourceRegister: r.family.clientOf(), SetName: affinitySet}
		r.addRule(chain, join(s.loadClient(r.family, end), []expr.Any{known}, s.remember(r.family), r.family.leadTo(end))...)
	}
	for i, end := range ends {
		left := uint32(len(ends) - i)
		drawn := []expr.Any{
			&expr.Numgen{Register: firstOfAll, Modulus: left, Type: unix.NFT_NG_RANDOM},
			&expr.Cmp{Op: expr.CmpOpEq, Register: firstOfAll, Data: make([]byte, 4)},
		}
		r.addRule(chain, join(drawn, s.loadClient(r.family, end), s.remember(r.family), r.family.leadTo(end))...)
	}
}

// end is an endpoint: its address, and its port in network order.
type end struct{ address, port []byte }

func (s spread) ends(f family) (all []end) {
	size := int(f.AddressBytes) + 4
	for rest := []byte(s.stay); len(rest) >= size; rest = rest[size:] {
		all = append(all, end{rest[:f.AddressBytes], rest[f.AddressBytes : f.AddressBytes+ipfamily.PortBytes]})
	}
	return all
}

// loadClient makes the key of a client that has this endpoint. nft knows no kind of plain constants, so the endpoint is written as what
// becomes of an address of the packet.
func (s spread) loadClient(f family, to end) []expr.Any {
	port := ipfamily.LoadPort
	load := []expr.Any{f.loadSource(f.clientOf()), f.loadDestination(f.wantsAddress())}
	if s.everywhere {
		load = append(load, become(f.wantsAddress(), f.unspecified.AsSlice()))
	}
	return append(load, port(f.wantsPort()),
		f.loadDestination(f.getsAddress()), become(f.getsAddress(), to.address), port(f.getsPort()), become(f.getsPort(), to.port))
}

// become replaces what is in the register.
func become(register uint32, by []byte) expr.Any {
	return &expr.Bitwise{SourceRegister: register, DestRegister: register, Len: uint32(len(by)), Mask: make([]byte, len(by)), Xor: by}
}

func (s spread) remember(f family) []expr.Any {
	return []expr.Any{&expr.Dynset{
		SrcRegKey: f.clientOf(), SetName: affinitySet, Operation: unix.NFT_DYNSET_OP_UPDATE, Timeout: s.affinity,
	}}
}

func (f family) leadTo(to end) []expr.Any {
	return []expr.Any{
		&expr.Immediate{Register: f.getsAddress(), Data: to.address}, &expr.Immediate{Register: f.getsPort(), Data: to.port},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: f.number, RegAddrMin: f.getsAddress(), RegProtoMin: f.getsPort(), Specified: true},
	}
}

// placesOf are the Services' endpoints with which clients stay, as keys of affinitySet have them behind the client.
func placesOf(services []Service) map[string]bool {
	places := map[string]bool{}
	for _, s := range services {
		if s.Affinity == 0 {
			continue
		}
		for _, endpoint := range s.allEndpoints() {
			places[string(concatenated(s.Address))+string(concatenated(endpoint))] = true
		}
	}
	return places
}

// rememberedClients are those of the table that is there, with the time that they have left. A table that cannot be read has none: it
// is about to be replaced.
func rememberedClients(conn *nft.Conn, f family, places map[string]bool) []nftables.SetElement {
	elements, err := conn.GetSetElements(f.ruleset(conn, translationTable).affinitySet())
	if err != nil {
		return nil
	}
	kept := elements[:0]
	for _, e := range elements {
		if e.Expires >= time.Second && len(kept) < affinityMax && places[f.placeOf(e)] {
			kept = append(kept, nftables.SetElement{Key: e.Key, Timeout: e.Expires})
		}
	}
	return kept
}

// placeOf is the key without the client.
func (f family) placeOf(e nftables.SetElement) string {
	return string(e.Key[min(len(e.Key), int(f.AddressBytes)):])
}

// forgetClients keeps clients of an endpoint that is gone from returning when it does: they have another one now. Nothing leads to it
// any more, so no further ones are added.
func (f family) forgetClients(before, now []Service) error {
	gone := placesOf(before)
	for place := range placesOf(now) {
		delete(gone, place)
	}
	if len(gone) == 0 {
		return nil
	}
	conn, err := nft.Open()
	if err != nil {
		return err
	}
	set := f.ruleset(conn, translationTable).affinitySet()
	elements, err := conn.GetSetElements(set)
	if err != nil {
		return tableError(err)
	}
	var stale []nftables.SetElement
	for _, e := range elements {
		if gone[f.placeOf(e)] && e.Expires >= time.Second { // others are gone by themselves, maybe before they can be deleted
			stale = append(stale, nftables.SetElement{Key: e.Key})
		}
	}
	if err := conn.SetDeleteElements(set, stale); err != nil {
		return tableError(err)
	}
	if err := conn.Flush(); err != nil {
		return tableError(err)
	}
	return nil
}
