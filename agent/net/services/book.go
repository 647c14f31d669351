package services

import (
	"cmp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/net/network"
)

// book holds the plans of all Services, and who holds each address. Of several that claim one, the oldest has it.
type book struct {
	plans   map[types.NamespacedName]entry
	holders map[network.ServiceAddress][]types.NamespacedName
}

// entry is a Service's plan; created is when the Service was, in seconds.
type entry struct {
	planned
	created int64
}

func newBook() *book {
	return &book{map[types.NamespacedName]entry{}, map[network.ServiceAddress][]types.NamespacedName{}}
}

// put replaces the plan of one Service and tells which addresses may lead elsewhere now.
func (b *book) put(name types.NamespacedName, now entry) (touched []network.ServiceAddress) {
	for _, s := range b.plans[name].addresses {
		touched = append(touched, s.ServiceAddress)
		others := slices.DeleteFunc(b.holders[s.ServiceAddress], func(n types.NamespacedName) bool { return n == name })
		if b.holders[s.ServiceAddress] = others; len(others) == 0 {
			delete(b.holders, s.ServiceAddress)
		}
	}
	delete(b.plans, name)
	if len(now.addresses) > 0 {
		b.plans[name] = now
	}
	for _, s := range now.addresses {
		touched = append(touched, s.ServiceAddress)
		b.holders[s.ServiceAddress] = append(b.holders[s.ServiceAddress], name)
	}
	return touched
}

// at is what an address leads to.
func (b *book) at(address network.ServiceAddress) (network.Service, bool) {
	holder, ok := b.holder(address)
	if !ok {
		return network.Service{}, false
	}
	i := slices.IndexFunc(b.plans[holder].addresses, func(s network.Service) bool { return s.ServiceAddress == address })
	return b.plans[holder].addresses[i], true
}

// holder is whose an address is: the oldest's of those that claim it.
func (b *book) holder(address network.ServiceAddress) (types.NamespacedName, bool) {
	holders := b.holders[address]
	if len(holders) == 0 {
		return types.NamespacedName{}, false
	}
	return slices.MinFunc(holders, b.olderFirst), true
}

func (b *book) olderFirst(x, y types.NamespacedName) int {
	return cmp.Or(cmp.Compare(b.plans[x].created, b.plans[y].created), strings.Compare(x.String(), y.String()))
}

func (b *book) all() []network.Service {
	all := make([]network.Service, 0, len(b.holders))
	for address := range b.holders {
		if s, ok := b.at(address); ok {
			all = append(all, s)
		}
	}
	return all
}

// healthPorts are those on which this node answers, and how many endpoints it has for each: of the oldest, if several have one.
func (b *book) healthPorts() map[uint16]health {
	ports := map[uint16]health{}
	for name, p := range b.plans {
		if p.healthPort == 0 {
			continue
		}
		if other, taken := ports[p.healthPort]; !taken || b.olderFirst(name, other.service) < 0 {
			ports[p.healthPort] = health{name, p.local}
		}
	}
	return ports
}
