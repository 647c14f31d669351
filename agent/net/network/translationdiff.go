package network

import (
	"github.com/google/nftables"
)

// changes are elements by their set.
type changes map[string]map[element]bool

func (c changes) put(e element) {
	if c[e.set] == nil {
		c[e.set] = map[element]bool{}
	}
	c[e.set][e] = true
}

// difference says which elements go and which come. An element whose value changes does both.
func difference(before, now []Service) (gone, added changes) {
	gone, added = changes{}, changes{}
	for _, s := range before {
		if !s.Address.IsValid() { // there was none
			continue
		}
		for _, e := range s.elements() {
			gone.put(e)
		}
	}
	for _, s := range now {
		for _, e := range s.elements() {
			if gone[e.set][e] {
				delete(gone[e.set], e)
			} else {
				added.put(e)
			}
		}
	}
	return gone, added
}

// keysOf is what a deletion needs.
func keysOf(elements map[element]bool) []nftables.SetElement {
	var keys []nftables.SetElement
	for e := range elements {
		keys = append(keys, nftables.SetElement{Key: []byte(e.key), KeyEnd: []byte(e.end)})
	}
	return keys
}

func valuesOf(elements map[element]bool) []nftables.SetElement {
	var values []nftables.SetElement
	for e := range elements {
		value := nftables.SetElement{Key: []byte(e.key), KeyEnd: []byte(e.end), Val: []byte(e.value)}
		if e.set == servicesMap || e.set == outsideMap {
			value.VerdictData = e.chain.verdict()
		}
		values = append(values, value)
	}
	return values
}

// spreadsOf says of each chain how many elements more lead there; fewer is below 0.
func spreadsOf(gone, added changes) map[spread]int {
	count := map[spread]int{}
	for by, all := range map[int]changes{-1: gone, 1: added} {
		for _, elements := range all {
			for e := range elements {
				if e.chain.count > 0 {
					count[e.chain] += by
				}
			}
		}
	}
	return count
}
