package kubernetesservice

import (
	"context"
	"net"
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/reserved"
)

// tellReserved says in the slice of the Service's name which ports and addresses the servers have: nodes and admission read it there.
// What cannot be found out now stays as it was told.
func (c *controller) tellReserved(ctx context.Context, slice *discoveryv1.EndpointSlice, servers []Server) {
	stored, _ := c.slices.Get(reserved.Servers) // where it is missing nothing was told
	var all []reserved.Server
	for _, s := range servers {
		all = append(all, reserved.Server{
			Name: s.Name, Addresses: machineAddresses(ctx, s), Port: reserved.PortOf(s.Endpoint), Gossip: reserved.PortOf(s.Gossip),
		})
	}
	slices.SortFunc(all, func(a, b reserved.Server) int { return strings.Compare(a.Name, b.Name) })
	all = reserved.Keep(all, reserved.ServersOf(stored))
	metav1.SetMetaDataAnnotation(&slice.ObjectMeta, reserved.Annotation, reserved.TextOf(all))
}

// machineAddresses are all addresses of a server that other machines may use, of both families, in order.
func machineAddresses(ctx context.Context, s Server) (texts []string) {
	host, _, _ := net.SplitHostPort(s.Endpoint)
	for _, host := range append([]string{host}, s.Addresses...) {
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			continue // a name that nobody knows now
		}
		for _, ip := range ips {
			if ip = ip.Unmap().WithZone(""); usable(ip) {
				texts = append(texts, ip.String())
			}
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts)
}

func usable(ip netip.Addr) bool {
	return !ip.IsLoopback() && !ip.IsUnspecified() && !ip.IsLinkLocalUnicast()
}
