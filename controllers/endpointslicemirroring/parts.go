package endpointslicemirroring

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/endpointslice/util"
	utilnet "k8s.io/utils/net"

	"github.com/setpoint-io/setpoint/controllers/reconcile/serviceendpoints"
)

// addressesMax is how many addresses of one subset are mirrored: upstream's default, so
// that a subset and a family make one slice.
const addressesMax = 1000

// part is what one slice holds.
type part struct {
	key       partKey
	ports     []discoveryv1.EndpointPort
	endpoints []*discoveryv1.Endpoint
	set       util.EndpointSet // the same
}

// partKey tells slices of the same Endpoints apart.
type partKey struct {
	family discoveryv1.AddressType
	ports  util.PortMapKey
}

func (k partKey) compare(other partKey) int {
	return cmp.Or(cmp.Compare(k.family, other.family), cmp.Compare(k.ports, other.ports))
}

// keyOf copies the ports, since upstream sorts them.
func keyOf(family discoveryv1.AddressType, ports []discoveryv1.EndpointPort) partKey {
	return partKey{family, util.NewPortMapKey(slices.Clone(ports))}
}

// leftOut counts addresses that are not mirrored.
type leftOut struct{ invalid, tooMany int }

// partsOf splits Endpoints into what makes one slice each; no part is empty.
func partsOf(endpoints *corev1.Endpoints) (parts []*part, out leftOut) {
	byKey := map[partKey]*part{}
	for _, subset := range serviceendpoints.Repack(endpoints.Subsets) {
		ports, room := portsOf(subset.Ports), addressesMax
		families := map[discoveryv1.AddressType]*part{}
		add := func(address corev1.EndpointAddress, ready bool) {
			family, endpoint, ok := endpointOf(address, ready)
			switch {
			case room == 0:
				out.tooMany++
				return
			case !ok:
				out.invalid++
				return
			case families[family] == nil:
				key := keyOf(family, ports)
				if byKey[key] == nil {
					byKey[key] = &part{key: key, ports: ports, set: util.EndpointSet{}}
					parts = append(parts, byKey[key])
				}
				families[family] = byKey[key]
			}
			families[family].add(endpoint)
			room--
		}
		for _, address := range subset.Addresses {
			add(address, true)
		}
		for _, address := range subset.NotReadyAddresses {
			add(address, false)
		}
	}
	return parts, out
}

// add replaces an endpoint of the same address, host name and object. Subsets that are
// different only for upstream, see Repack, may fill a part twice.
func (p *part) add(endpoint discoveryv1.Endpoint) {
	if known := p.set.Get(&endpoint); known != nil {
		*known = endpoint
	} else if len(p.endpoints) < addressesMax {
		p.endpoints = append(p.endpoints, &endpoint)
		p.set.Insert(&endpoint)
	}
}

// endpointOf is the endpoint of an address; false if that is no IP address.
func endpointOf(address corev1.EndpointAddress, ready bool) (discoveryv1.AddressType, discoveryv1.Endpoint, bool) {
	ip := utilnet.ParseIPSloppy(address.IP) // some were stored with leading zeros
	if ip == nil {
		return "", discoveryv1.Endpoint{}, false
	}
	family := discoveryv1.AddressTypeIPv4
	if ip.To4() == nil {
		family = discoveryv1.AddressTypeIPv6
	}
	endpoint := discoveryv1.Endpoint{
		Addresses: []string{ip.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		TargetRef: address.TargetRef, NodeName: address.NodeName,
	}
	if address.Hostname != "" {
		endpoint.Hostname = &address.Hostname
	}
	return family, endpoint, true
}

func portsOf(ports []corev1.EndpointPort) []discoveryv1.EndpointPort {
	all := make([]discoveryv1.EndpointPort, 0, len(ports))
	for _, port := range ports {
		all = append(all, discoveryv1.EndpointPort{
			Name: &port.Name, Port: &port.Port, Protocol: &port.Protocol, AppProtocol: port.AppProtocol,
		})
	}
	return all
}
