package table

import (
	"encoding/binary"
	"errors"
	"maps"
	"net/netip"
	"slices"

	"github.com/google/nftables"

	"github.com/setpoint-io/setpoint/agent/net/network/nft"
	"github.com/setpoint-io/setpoint/agent/net/policy/plan"
)

// Names in the table besides those of the plan.
const (
	forwardChain = "forward"
	itselfSet    = "itself"
	isolatedSet  = "isolated"
	ingressMap   = "ingress"
	egressMap    = "egress"
)

// ruleset is a transaction in the making.
type ruleset struct {
	conn   *nft.Conn
	table  *nftables.Table
	family family
}

// fill makes a table of its own.
func (r *ruleset) fill(next *plan.Table) error {
	r.conn.AddTable(r.table)
	var err error
	for _, set := range r.fixed() {
		err = errors.Join(err, r.conn.AddSet(set, nil))
	}
	r.forward()
	nothing := &plan.Table{}
	return errors.Join(err, r.extend(nothing, next), r.lead(nothing, next))
}

// extend makes the sets and chains that next has and before has not, and changes the elements of the others.
func (r *ruleset) extend(before, next *plan.Table) error {
	err := errors.Join(
		changeSets(r, before.Pods, next.Pods, r.addressSet, netip.Addr.Compare, podElements),
		r.addBlocks(before.Blocks, next.Blocks),
		changeSets(r, before.Ports, next.Ports, r.portSet, plan.Port.Compare, portElements))
	ofIngress := slices.Collect(maps.Values(next.Ingress))
	for _, name := range onlyIn(next.Chains, before.Chains) {
		r.addChain(name, next.Chains[name], slices.Contains(ofIngress, name))
	}
	return err
}

// lead leads pods to their chains.
func (r *ruleset) lead(before, next *plan.Table) error {
	gone, fresh := difference(isolated(before), isolated(next), netip.Addr.Compare)
	return errors.Join(
		r.changeMap(ingressMap, before.Ingress, next.Ingress), r.changeMap(egressMap, before.Egress, next.Egress),
		r.conn.SetDeleteElements(r.addressSet(isolatedSet), podElements(gone)),
		r.conn.SetAddElements(r.addressSet(isolatedSet), podElements(fresh)),
		r.conn.SetDeleteElements(r.pairSet(), pairElements(gone)), r.conn.SetAddElements(r.pairSet(), pairElements(fresh)))
}

// leaves reports whether there is something for tidy.
func leaves(before, next *plan.Table) bool {
	return len(onlyIn(before.Chains, next.Chains))+len(onlyIn(before.Pods, next.Pods))+
		len(onlyIn(before.Blocks, next.Blocks))+len(onlyIn(before.Ports, next.Ports)) > 0
}

// tidy removes the chains and sets to which nothing leads any more.
func (r *ruleset) tidy(before, next *plan.Table) error {
	for _, name := range onlyIn(before.Chains, next.Chains) {
		r.removeChain(name)
	}
	for _, name := range slices.Concat(onlyIn(before.Pods, next.Pods), onlyIn(before.Blocks, next.Blocks), onlyIn(before.Ports, next.Ports)) {
		r.conn.DelSet(&nftables.Set{Name: name, Table: r.table})
	}
	return nil
}

// onlyIn are the names that b lacks, in order.
func onlyIn[T any](a, b map[string]T) []string {
	return slices.Sorted(func(yield func(string) bool) {
		for name := range a {
			if _, both := b[name]; !both && !yield(name) {
				return
			}
		}
	})
}

// changeSets makes the sets that are new and changes elements of the others.
func changeSets[T any](r *ruleset, before, next map[string][]T, set func(string) *nftables.Set, compare func(T, T) int,
	elements func([]T) []nftables.SetElement,
) (err error) {
	for _, name := range slices.Sorted(maps.Keys(next)) {
		if _, known := before[name]; !known {
			err = errors.Join(err, r.conn.AddSet(set(name), nil))
		}
		gone, fresh := difference(before[name], next[name], compare)
		err = errors.Join(err, r.conn.SetDeleteElements(set(name), elements(gone)), r.conn.SetAddElements(set(name), elements(fresh)))
	}
	return err
}

// addBlocks makes the sets that are new; a set of blocks is named after them, so it never changes.
func (r *ruleset) addBlocks(before, next map[string][]plan.Block) (err error) {
	for _, name := range onlyIn(next, before) {
		err = errors.Join(err, r.conn.AddSet(r.blockSet(name), nil), r.conn.SetAddElements(r.blockSet(name), blockElements(next[name])))
	}
	return err
}

// difference of two sorted lists.
func difference[T any](before, next []T, compare func(T, T) int) (gone, fresh []T) {
	for len(before) > 0 || len(next) > 0 {
		switch {
		case len(before) == 0:
			return gone, append(fresh, next...)
		case len(next) == 0:
			return append(gone, before...), fresh
		}
		switch c := compare(before[0], next[0]); {
		case c < 0:
			gone, before = append(gone, before[0]), before[1:]
		case c > 0:
			fresh, next = append(fresh, next[0]), next[1:]
		default:
			before, next = before[1:], next[1:]
		}
	}
	return gone, fresh
}

// isolated are the pods that have a chain for any direction.
func isolated(t *plan.Table) []netip.Addr {
	all := slices.AppendSeq(slices.Collect(maps.Keys(t.Ingress)), maps.Keys(t.Egress))
	slices.SortFunc(all, netip.Addr.Compare)
	return slices.Compact(all)
}

func (r *ruleset) changeMap(name string, before, next map[netip.Addr]string) (err error) {
	for _, w := range r.family.ways() {
		set := r.verdictMap(name + w.suffix)
		err = errors.Join(err, r.conn.SetDeleteElements(set, verdictElements(before, next, w)),
			r.conn.SetAddElements(set, verdictElements(next, before, w)))
	}
	return err
}

// verdictElements are those of pods that have another chain in the other map, or none.
func verdictElements(of, other map[netip.Addr]string, w way) (elements []nftables.SetElement) {
	for pod, chain := range of {
		if other[pod] != chain {
			elements = append(elements, verdictElement(pod, chain+w.suffix))
		}
	}
	return elements
}

func podElements(pods []netip.Addr) []nftables.SetElement {
	elements := make([]nftables.SetElement, len(pods))
	for i, pod := range pods {
		elements[i].Key = pod.AsSlice()
	}
	return elements
}

func pairElements(pods []netip.Addr) []nftables.SetElement {
	elements := make([]nftables.SetElement, len(pods))
	for i, pod := range pods {
		elements[i].Key = append(pod.AsSlice(), pod.AsSlice()...)
	}
	return elements
}

// portElements are keys as rules load them: each part fills its register with zeros.
func portElements(ports []plan.Port) []nftables.SetElement {
	elements := make([]nftables.SetElement, len(ports))
	for i, port := range ports {
		key := append(port.Address.AsSlice(), port.Protocol, 0, 0, 0)
		elements[i].Key = append(binary.BigEndian.AppendUint16(key, port.Number), 0, 0)
	}
	return elements
}

// blockElements say where each range begins and where it has ended; the last one may go up to the end of all addresses.
func blockElements(blocks []plan.Block) []nftables.SetElement {
	var elements []nftables.SetElement
	for _, b := range blocks {
		elements = append(elements, nftables.SetElement{Key: b.First.AsSlice()})
		if behind := b.Last.Next(); behind.IsValid() {
			elements = append(elements, nftables.SetElement{Key: behind.AsSlice(), IntervalEnd: true})
		}
	}
	return elements
}
