package kubernetesservice

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// addressesOf are the IPv4 addresses at which pods reach the servers, sorted, by port.
// A server that has none is left out.
func addressesOf(servers []Server) (map[int32][]string, error) {
	byPort := map[int32][]string{}
	for _, server := range servers {
		host, portText, err := net.SplitHostPort(server.Endpoint)
		if err != nil {
			return nil, err
		}
		port, err := strconv.ParseInt(portText, 10, 32)
		if err != nil {
			return nil, err
		}
		address, err := reachable(append([]string{host}, server.Addresses...))
		if err != nil {
			return nil, err
		}
		if address != "" && !slices.Contains(byPort[int32(port)], address) {
			byPort[int32(port)] = append(byPort[int32(port)], address)
		}
	}
	for _, addresses := range byPort {
		slices.Sort(addresses)
	}
	return byPort, nil
}

// reachable is the first address that leads out of a pod, or empty. Only the first
// host must resolve.
func reachable(hosts []string) (string, error) {
	for i, host := range hosts {
		ip, err := net.ResolveIPAddr("ip4", host)
		if err != nil && i == 0 {
			return "", err
		}
		if err == nil && !ip.IP.IsLoopback() {
			return ip.IP.String(), nil
		}
	}
	return "", nil
}

// endpointsOf is what older clients read.
// Address is the IPv4 address at which other machines reach a server; empty: there is none now.
func Address(server Server) string {
	host, _, err := net.SplitHostPort(server.Endpoint)
	if err != nil {
		return ""
	}
	address, _ := reachable(append([]string{host}, server.Addresses...)) // a name that cannot be resolved is no address
	return address
}

func endpointsOf(byPort map[int32][]string) *corev1.Endpoints {
	endpoints := &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: Name, Labels: map[string]string{discoveryv1.LabelSkipMirror: "true"}},
	}
	for _, port := range slices.Sorted(maps.Keys(byPort)) {
		subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: portName, Port: port, Protocol: corev1.ProtocolTCP}}}
		for _, address := range byPort[port] {
			subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: address})
		}
		endpoints.Subsets = append(endpoints.Subsets, subset)
	}
	return endpoints
}

// slicesOf has one slice for each port, the first with the Service's own name.
func slicesOf(byPort map[int32][]string) []*discoveryv1.EndpointSlice {
	if len(byPort) == 0 {
		return []*discoveryv1.EndpointSlice{newSlice(Name)}
	}
	var all []*discoveryv1.EndpointSlice
	for i, port := range slices.Sorted(maps.Keys(byPort)) {
		name := Name
		if i > 0 {
			name = fmt.Sprintf("%s-%d", Name, port)
		}
		slice := newSlice(name)
		slice.Ports = []discoveryv1.EndpointPort{{Name: new(portName), Port: &port, Protocol: new(corev1.ProtocolTCP)}}
		for _, address := range byPort[port] {
			slice.Endpoints = append(
				slice.Endpoints,
				discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}},
			)
		}
		all = append(all, slice)
	}
	return all
}

func newSlice(name string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault, Labels: sliceLabels()},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
}

func sliceLabels() map[string]string {
	return map[string]string{discoveryv1.LabelServiceName: Name, discoveryv1.LabelManagedBy: sliceManager}
}
