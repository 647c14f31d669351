package serviceendpoints

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/dump"
)

// Repack is the canonical form of subsets: each port is in one subset, subsets of the same
// addresses are one, and all is in upstream's order. The result shares nothing that a
// caller may change.
func Repack(subsets []corev1.EndpointSubset) []corev1.EndpointSubset {
	var p Packer
	for _, subset := range subsets {
		for _, address := range subset.Addresses {
			p.addAll(address, subset.Ports, true)
		}
		for _, address := range subset.NotReadyAddresses {
			p.addAll(address, subset.Ports, false)
		}
	}
	return p.Subsets()
}

// Packer collects addresses with their ports. The zero value is empty.
type Packer struct {
	addresses []corev1.EndpointAddress
	known     map[identity]int // where in addresses
	noPorts   map[int]bool     // whether the address without a port is ready
	// ports says for each port which address is ready. As upstream's, the key
	// tells pointers to equal texts apart.
	ports map[corev1.EndpointPort]map[int]bool
}

// identity tells addresses apart: pods may share an IP.
type identity struct {
	ip  string
	uid types.UID
}

func (p *Packer) addAll(address corev1.EndpointAddress, ports []corev1.EndpointPort, ready bool) {
	if len(ports) == 0 {
		p.Add(address, nil, ready)
	}
	for i := range ports {
		p.Add(address, &ports[i], ready)
	}
}

// Add adds an address with a port, or without one. An address that was added before keeps
// its other fields; if it was or is not ready with this port, it is not.
func (p *Packer) Add(address corev1.EndpointAddress, port *corev1.EndpointPort, ready bool) {
	if p.known == nil {
		p.known, p.noPorts, p.ports = map[identity]int{}, map[int]bool{}, map[corev1.EndpointPort]map[int]bool{}
	}
	id := identity{ip: address.IP}
	if address.TargetRef != nil {
		id.uid = address.TargetRef.UID
	}
	at, ok := p.known[id]
	if !ok {
		at = len(p.addresses)
		p.known[id] = at
		p.addresses = append(p.addresses, address)
	}
	states := p.noPorts
	if port != nil {
		if states = p.ports[*port]; states == nil {
			states = map[int]bool{}
			p.ports[*port] = states
		}
	}
	if was, ok := states[at]; !ok || was {
		states[at] = ready
	}
}

// Subsets is the canonical form of what was added.
func (p *Packer) Subsets() []corev1.EndpointSubset {
	order := make([]int, len(p.addresses)) // of addresses, by rank
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return compare(p.addresses[a], p.addresses[b]) })
	grouped := map[string]*corev1.EndpointSubset{}
	group := func(states map[int]bool) *corev1.EndpointSubset {
		key := keyOf(order, states)
		if grouped[key] == nil {
			grouped[key] = p.subset(order, states)
		}
		return grouped[key]
	}
	if len(p.noPorts) > 0 {
		group(p.noPorts)
	}
	for port, states := range p.ports {
		if subset := group(states); port.Port > 0 {
			subset.Ports = append(subset.Ports, port)
		}
	}
	all := make([]corev1.EndpointSubset, 0, len(grouped))
	for _, subset := range grouped {
		sortByHash(subset.Ports)
		all = append(all, *subset)
	}
	sortByHash(all)
	return all
}

// keyOf is the same for the same addresses in the same states.
func keyOf(order []int, states map[int]bool) string {
	key := make([]byte, 0, 3*len(states))
	for rank, at := range order {
		if ready, ok := states[at]; ok && ready {
			key = binary.AppendUvarint(key, uint64(2*rank+1))
		} else if ok {
			key = binary.AppendUvarint(key, uint64(2*rank))
		}
	}
	return string(key)
}

func (p *Packer) subset(order []int, states map[int]bool) *corev1.EndpointSubset {
	subset := &corev1.EndpointSubset{}
	for _, at := range order {
		if ready, ok := states[at]; ok && ready {
			subset.Addresses = append(subset.Addresses, p.addresses[at])
		} else if ok {
			subset.NotReadyAddresses = append(subset.NotReadyAddresses, p.addresses[at])
		}
	}
	return subset
}

// compare orders addresses by their text, then those of no object first, then by uid.
func compare(a, b corev1.EndpointAddress) int {
	if order := cmp.Compare(a.IP, b.IP); order != 0 || a.TargetRef == nil && b.TargetRef == nil {
		return order
	}
	switch {
	case a.TargetRef == nil:
		return -1
	case b.TargetRef == nil:
		return 1
	}
	return cmp.Compare(a.TargetRef.UID, b.TargetRef.UID)
}

// sortByHash sorts by the hash that upstream sorts by, so that both write the same order.
func sortByHash[T any](list []T) {
	if len(list) < 2 {
		return
	}
	type hashed struct {
		item T
		hash []byte
	}
	all := make([]hashed, 0, len(list))
	for _, item := range list {
		h := fnv.New128a()
		_, _ = io.WriteString(h, dump.ForHash(item))
		all = append(all, hashed{item, h.Sum(nil)})
	}
	slices.SortFunc(all, func(a, b hashed) int { return bytes.Compare(a.hash, b.hash) })
	for i, h := range all {
		list[i] = h.item
	}
}
