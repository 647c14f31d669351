package network

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/nft"
)

// ownSet are the addresses at which the cluster's own programs are reached.
const ownSet = "own"

// SetOwn says at which addresses the cluster's own servers, agents and tunnels are reached, from here and here: the unspecified address
// stands for all of this machine. What is sent there is neither translated nor refused, whatever Services claim. It holds at once, also
// in a table that an earlier agent has left, and from each Replace on.
func (t *Translation) SetOwn(all []ServiceAddress) error {
	return errors.Join(t.inet.setOwn(addressesOf(inet, all)), t.inet6.setOwn(addressesOf(inet6, all)))
}

func (t *translation) setOwn(all []ServiceAddress) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.own = all
	conn, err := nft.Open()
	if err != nil {
		return err
	}
	rules := t.family.ruleset(conn, translationTable)
	if handle, err := nft.Handle(rules.table); err != nil || handle == 0 {
		return err // without a table nothing is translated
	}
	sets, err := conn.GetSets(rules.table)
	switch has := func(s *nftables.Set) bool { return s.Name == ownSet }; {
	case err != nil:
		return tableError(err)
	case slices.ContainsFunc(sets, has):
		conn.FlushSet(rules.set(ownSet))
		err = rules.addOwn(all)
	default:
		err = rules.leave(sets, all)
	}
	if err = errors.Join(err, conn.Flush()); err != nil {
		return tableError(fmt.Errorf("the cluster's own addresses: %w", err))
	}
	return t.family.forgetFlows(t.family.astray(all))
}

func (r *ruleset) addOwn(all []ServiceAddress) error {
	var elements []nftables.SetElement
	for _, a := range all {
		elements = append(elements, nftables.SetElement{Key: []byte(a.key())})
	}
	return r.conn.SetAddElements(r.set(ownSet), elements)
}

// leave takes these addresses out of a table without ownSet: an older release has made it.
func (r *ruleset) leave(sets []*nftables.Set, all []ServiceAddress) error {
	keys := map[string]bool{}
	for _, a := range all {
		keys[a.key()] = true
	}
	var failed error
	for _, set := range sets {
		if !slices.Contains(setsByAddress, set.Name) {
			continue
		}
		elements, err := r.conn.GetSetElements(set)
		gone := slices.DeleteFunc(elements, func(e nftables.SetElement) bool { return !keys[string(e.Key)] })
		failed = errors.Join(failed, err, r.conn.SetDeleteElements(set, gone))
	}
	return failed
}

// astray are the flows of UDP to the cluster's own addresses which do not end there. That an address was among them before says nothing:
// there may have been no table then, or the flows could not be forgotten.
func (f family) astray(all []ServiceAddress) staleFlows {
	stale := staleFlows{}
	for _, a := range all {
		if a.Protocol != unix.IPPROTO_UDP {
			continue
		}
		if !a.everywhere() {
			stale[a.Address] = []netip.AddrPort{a.Address}
			continue
		}
		machine, _ := f.localAddresses() // forgetFlows asks again, and tells the error
		for ip := range machine {
			at := netip.AddrPortFrom(ip, a.Address.Port())
			stale[at] = []netip.AddrPort{at}
		}
	}
	return stale
}

// passOwn lets what is for the cluster's own programs go on as it is. first are conditions that come before.
func (r *ruleset) passOwn(chain *nftables.Chain, first ...expr.Any) {
	f, accept := r.family, []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}
	r.addRule(chain, join(first, f.loadKey(), f.isIn(ownSet), accept)...)
	r.addRule(chain, join(first, destinationIs(expr.CmpOpEq, unix.RTN_LOCAL), f.loadPortKey(), f.isIn(ownSet), accept)...)
}
