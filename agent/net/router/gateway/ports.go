package gateway

import (
	"fmt"
	"slices"

	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/internal/shares"
)

// portsMax is how many ports nodes open for Gateways, beside those of Ingresses. Namespaces have equally many of them.
const portsMax = 256

// dividePorts closes those that are too many: of the namespaces that have the most, the ports of their youngest Gateways.
func (b *builder) dividePorts() {
	own := slices.DeleteFunc(slices.Clone(b.opened), func(number int) bool {
		_, shared := b.Shared[number]
		return shared
	})
	_, cut := shares.Divide(own, portsMax, func(number int) string { return b.result.Ports[number].first.Namespace })
	for _, number := range cut {
		delete(b.result.Ports, number)
	}
	for _, parents := range b.parents {
		for _, p := range parents {
			refusePorts(p.listeners, cut)
		}
	}
}

func refusePorts(listeners []*listener, cut []int) {
	for _, l := range listeners {
		if slices.Contains(cut, l.number) && l.served() {
			l.divided = true
			l.accepted = fault{
				string(v1.ListenerReasonPortUnavailable),
				fmt.Sprintf("nodes open %d ports for Gateways, and those of this namespace have their share of them", portsMax),
			}
		}
	}
}
