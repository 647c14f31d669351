package nettrace

import (
	"context"
	"net"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Fetch reads all that decides about packets. Names that are not the cluster's are asked of this machine's resolver.
func Fetch(ctx context.Context, client kubernetes.Interface) (*World, error) {
	w := &World{Lookup: func(name string) ([]netip.Addr, error) {
		addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", name)
		for i := range addresses {
			addresses[i] = addresses[i].Unmap()
		}
		return addresses, err
	}}
	core, all := client.CoreV1(), metav1.ListOptions{}
	nodes, err := core.Nodes().List(ctx, all)
	if err != nil {
		return nil, err
	}
	pods, err := core.Pods("").List(ctx, all)
	if err != nil {
		return nil, err
	}
	services, err := core.Services("").List(ctx, all)
	if err != nil {
		return nil, err
	}
	slices, err := client.DiscoveryV1().EndpointSlices("").List(ctx, all)
	if err != nil {
		return nil, err
	}
	namespaces, err := core.Namespaces().List(ctx, all)
	if err != nil {
		return nil, err
	}
	policies, err := client.NetworkingV1().NetworkPolicies("").List(ctx, all)
	if err != nil {
		return nil, err
	}
	w.Nodes, w.Pods, w.Services = pointers(nodes.Items), pointers(pods.Items), pointers(services.Items)
	w.EndpointSlices, w.Namespaces, w.Policies = pointers(slices.Items), pointers(namespaces.Items), pointers(policies.Items)
	return w, nil
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}
