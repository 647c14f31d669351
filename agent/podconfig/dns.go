package podconfig

import (
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

const (
	// Limits of resolv.conf, upstream's.
	nameserversMax = 3
	searchesMax    = 32
	clusterNdots   = "ndots:5"
)

// DNS is the node's part of a pod's resolver configuration.
type DNS struct {
	// Servers are the cluster's DNS addresses. Empty: pods use the node's.
	Servers []string
	// Domain is the cluster's domain, such as "cluster.local".
	Domain string
	// ResolvConf is the node's file; /etc/resolv.conf when empty.
	ResolvConf string
}

// config is the resolver configuration dnsPolicy and dnsConfig ask for.
func (d DNS) config(pod *corev1.Pod) *runtimeapi.DNSConfig {
	policy := pod.Spec.DNSPolicy
	if policy == corev1.DNSClusterFirst && pod.Spec.HostNetwork {
		policy = corev1.DNSDefault
	}
	out := &runtimeapi.DNSConfig{}
	switch {
	case policy == corev1.DNSNone:
	case policy == corev1.DNSDefault || len(d.Servers) == 0:
		out = d.node()
	default:
		host := d.node()
		out.Servers = slices.Clone(d.Servers)
		out.Searches = append([]string{pod.Namespace + ".svc." + d.Domain, "svc." + d.Domain, d.Domain}, host.Searches...)
		out.Options = []string{clusterNdots}
	}
	if pod.Spec.DNSConfig != nil {
		addDNS(out, pod.Spec.DNSConfig)
	}
	out.Servers = out.Servers[:min(len(out.Servers), nameserversMax)]
	out.Searches = out.Searches[:min(len(out.Searches), searchesMax)]
	return out
}

// addDNS appends, without repeating; an option replaces one of the same name.
func addDNS(out *runtimeapi.DNSConfig, extra *corev1.PodDNSConfig) {
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

// node parses the node's resolv.conf; an unreadable one gives nothing.
func (d DNS) node() *runtimeapi.DNSConfig {
	path := d.ResolvConf
	if path == "" {
		path = "/etc/resolv.conf"
	}
	out := &runtimeapi.DNSConfig{}
	data, err := os.ReadFile(path)
	if err != nil {
		return out
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "nameserver":
			out.Servers = append(out.Servers, fields[1])
		case "search":
			out.Searches = fields[1:]
		case "options":
			out.Options = fields[1:]
		}
	}
	return out
}
