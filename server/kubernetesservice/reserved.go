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
	former := reserved.ServersOf(stored)
	var all []reserved.Server
	for _, s := range servers {
		all = append(all, reserved.Server{
			Name: s.Name, Addresses: addressesNow(ctx, s, former), Port: reserved.PortOf(s.Endpoint), Gossip: reserved.PortOf(s.Gossip),
		})
	}
	slices.SortFunc(all, func(a, b reserved.Server) int { return strings.Compare(a.Name, b.Name) })
	all = reserved.Keep(all, former)
	metav1.SetMetaDataAnnotation(&slice.ObjectMeta, reserved.Annotation, reserved.TextOf(all))
}

// addressesNow are those of a server's machine, and while one of its names is not found the former ones too: which of them are that name's
// is not known.
func addressesNow(ctx context.Context, s Server, former []reserved.Server) []string {
	texts, found := machineAddresses(ctx, s)
	at := slices.IndexFunc(former, func(f reserved.Server) bool { return f.Name == s.Name })
	if found || at < 0 {
		return texts
	}
	texts = slices.Concat(texts, former[at].Addresses)
	slices.Sort(texts)
	return slices.Compact(texts)
}

// machineAddresses are all addresses of a server that other machines may use, of both families, in order. found says that
// all names were.
func machineAddresses(ctx context.Context, s Server) (texts []string, found bool) {
	found = true
	host, _, _ := net.SplitHostPort(s.Endpoint)
	for _, host := range append([]string{host}, s.Addresses...) {
		ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			found = false
			continue // a name that nobody knows now
		}
		for _, ip := range ips {
			if ip = ip.Unmap().WithZone(""); usable(ip) {
				texts = append(texts, ip.String())
			}
		}
	}
	slices.Sort(texts)
	return slices.Compact(texts), found
}

func usable(ip netip.Addr) bool {
	return !ip.IsLoopback() && !ip.IsUnspecified() && !ip.IsLinkLocalUnicast()
}
