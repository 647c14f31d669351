package resolvconf

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Limits of a resolver, upstream's.
const (
	serversMax       = 3
	searchesMax      = 32
	searchesBytesMax = 2048
	clusterNdots     = "ndots:5"
)

// Node is the node's part of a pod's resolver configuration.
type Node struct {
	// Servers are the cluster's DNS addresses. Empty: pods use the node's.
	Servers []string
	// Domain is the cluster's domain, such as "cluster.local".
	Domain string
	// Path is the node's file; "": nothing is taken from the node.
	Path string
}

// Pod is the resolver configuration that dnsPolicy and dnsConfig ask for, and what the limits have left out of it, in upstream's words.
func (n Node) Pod(pod *corev1.Pod) (config *runtimeapi.DNSConfig, omitted []string) {
	policy := pod.Spec.DNSPolicy
	if policy == corev1.DNSClusterFirst && pod.Spec.HostNetwork {
		policy = corev1.DNSDefault
	}
	out := &runtimeapi.DNSConfig{}
	switch {
	case policy == corev1.DNSNone:
	case policy == corev1.DNSDefault || len(n.Servers) == 0:
		f := Read(n.Path)
		out.Servers, out.Searches, out.Options = f.Servers, f.Searches, f.Options
	default:
		out.Servers = slices.Clone(n.Servers)
		out.Searches = union([]string{pod.Namespace + ".svc." + n.Domain, "svc." + n.Domain, n.Domain}, Read(n.Path).Searches)
		out.Options = []string{clusterNdots}
	}
	if pod.Spec.DNSConfig != nil {
		add(out, pod.Spec.DNSConfig)
	}
	return out, limit(out)
}

// add appends, without repeating; an option replaces one of the same name.
func add(out *runtimeapi.DNSConfig, extra *corev1.PodDNSConfig) {
	out.Servers = union(out.Servers, extra.Nameservers)
	out.Searches = union(out.Searches, extra.Searches)
	for _, o := range extra.Options {
		out.Options = slices.DeleteFunc(out.Options, func(have string) bool {
			name, _, _ := strings.Cut(have, ":")
			return name == o.Name
		})
		text := o.Name
		if o.Value != nil && *o.Value != "" {
			text += ":" + *o.Value
		}
		out.Options = append(out.Options, text)
	}
}

func union(a, b []string) []string {
	for _, v := range b {
		if !slices.Contains(a, v) {
			a = append(a, v)
		}
	}
	return a
}

// limit cuts what a resolver would not take.
func limit(out *runtimeapi.DNSConfig) (omitted []string) {
	if len(out.Servers) > serversMax {
		out.Servers = out.Servers[:serversMax]
		omitted = append(omitted, "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "+
			strings.Join(out.Servers, " "))
	}
	kept := out.Searches[:min(len(out.Searches), searchesMax)]
	for len(strings.Join(kept, " ")) > searchesBytesMax {
		kept = kept[:len(kept)-1]
	}
	if len(kept) < len(out.Searches) {
		out.Searches = kept
		omitted = append(omitted, "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: "+
			strings.Join(kept, " "))
	}
	return omitted
}
