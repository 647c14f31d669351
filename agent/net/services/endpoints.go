package services

import (
	"cmp"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// endpointsMax is how many endpoints of one port are used.
const endpointsMax = 1 << 16

// Place is where this node is.
type Place struct{ Node, Zone string }

// endpoint is one of a port. ending: it is being deleted and still serves.
type endpoint struct {
	address              netip.AddrPort
	ready, ending, local bool
	hints                *discoveryv1.EndpointHints
}

// choice are the endpoints for traffic that may go to any node, and for traffic that must stay on this one.
type choice struct{ cluster, local []endpoint }

// choose prefers ready endpoints to those that end, and for the cluster those that hints give to this node or zone: hints count
// only if every ready endpoint has one and one of them is for here.
func choose(all []endpoint, here Place) choice {
	ready, ending := filter(all, func(e endpoint) bool { return e.ready }), filter(all, func(e endpoint) bool { return e.ending })
	isLocal := func(e endpoint) bool { return e.local }
	c := choice{hinted(ready, here), filter(ready, isLocal)}
	if len(c.cluster) == 0 {
		c.cluster = ending
	}
	if len(c.local) == 0 {
		c.local = filter(ending, isLocal)
	}
	return c
}

func hinted(ready []endpoint, here Place) []endpoint {
	for _, forThis := range []func(e endpoint) (has, here bool){
		func(e endpoint) (bool, bool) { return forNode(e.hints, here.Node) },
		func(e endpoint) (bool, bool) { return forZone(e.hints, here.Zone) },
	} {
		missing := slices.ContainsFunc(ready, func(e endpoint) bool { has, _ := forThis(e); return !has })
		if near := filter(ready, func(e endpoint) bool { _, is := forThis(e); return is }); !missing && len(near) > 0 {
			return near
		}
	}
	return ready
}

func forNode(hints *discoveryv1.EndpointHints, name string) (has, here bool) {
	if hints == nil {
		return false, false
	}
	return len(hints.ForNodes) > 0, slices.ContainsFunc(hints.ForNodes, func(n discoveryv1.ForNode) bool { return n.Name == name })
}

func forZone(hints *discoveryv1.EndpointHints, name string) (has, here bool) {
	if hints == nil {
		return false, false
	}
	return len(hints.ForZones) > 0, slices.ContainsFunc(hints.ForZones, func(z discoveryv1.ForZone) bool { return z.Name == name })
}

func filter(all []endpoint, keep func(endpoint) bool) []endpoint {
	var kept []endpoint
	for _, e := range all {
		if keep(e) {
			kept = append(kept, e)
		}
	}
	return kept
}

// endpointsOf are those of a family behind one port, each once, in order. Of one that is listed twice, the best state counts.
func endpointsOf(port corev1.ServicePort, f corev1.IPFamily, behind []*discoveryv1.EndpointSlice, here Place) []endpoint {
	var all []endpoint
	for _, slice := range behind {
		number, ok := portNumber(port, slice.Ports)
		if !ok || slice.AddressType != discoveryv1.AddressType(f) {
			continue
		}
		for _, e := range slice.Endpoints {
			if known, ok := endpointOf(e, f, number, here); ok {
				all = append(all, known)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b endpoint) int {
		return cmp.Or(a.address.Compare(b.address), cmp.Compare(a.rank(), b.rank()))
	})
	all = slices.CompactFunc(all, func(a, b endpoint) bool { return a.address == b.address })
	return all[:min(len(all), endpointsMax)]
}

func (e endpoint) rank() int {
	switch {
	case e.ready:
		return 0
	case e.ending:
		return 1
	}
	return 2
}

// endpointOf takes the first address: the others of one endpoint mean the same.
func endpointOf(e discoveryv1.Endpoint, f corev1.IPFamily, port uint16, here Place) (endpoint, bool) {
	if len(e.Addresses) == 0 {
		return endpoint{}, false
	}
	address, err := netip.ParseAddr(e.Addresses[0])
	if err != nil || !in(f, address) {
		return endpoint{}, false
	}
	c := e.Conditions
	return endpoint{
		address: netip.AddrPortFrom(address, port), hints: e.Hints,
		ready:  c.Ready == nil || *c.Ready,
		ending: (c.Serving == nil || *c.Serving) && c.Terminating != nil && *c.Terminating,
		local:  e.NodeName != nil && *e.NodeName == here.Node,
	}, true
}

// portNumber finds a Service's port in a slice: names tell, since numbers may differ from slice to slice.
func portNumber(port corev1.ServicePort, ports []discoveryv1.EndpointPort) (uint16, bool) {
	for _, p := range ports {
		if p.Port != nil && p.Name != nil && *p.Name == port.Name && p.Protocol != nil && *p.Protocol == port.Protocol {
			return uint16(*p.Port), *p.Port != 0
		}
	}
	return 0, false
}
