package nettrace

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/net/dns/records"
	"github.com/setpoint-io/setpoint/agent/net/resolvconf"
	"github.com/setpoint-io/setpoint/internal/clusterdns"
	"github.com/setpoint-io/setpoint/internal/servicerange"
)

const (
	clusterDomain = "cluster.local"
	// aliasesMax bounds names that lead to names.
	aliasesMax  = 8
	defaultDots = 1
)

// toName asks the cluster's DNS as the pod's resolver does, and goes on with the answer.
func (t *tracer) toName(name string) error {
	dns := t.dns().String()
	config, _ := resolvconf.Node{Servers: []string{dns}, Domain: clusterDomain}.Pod(t.from)
	if !slices.Contains(config.Servers, dns) {
		t.stop("dns", podName(t.from), fmt.Sprintf("its dnsPolicy %s does not ask the cluster's DNS", t.from.Spec.DNSPolicy), "use dnsPolicy: ClusterFirst")
		return nil
	}
	if !t.asksDNS() {
		return nil
	}
	for _, candidate := range candidates(name, config.Searches, dotsOf(config.Options)) {
		addresses, found := t.resolve(candidate, aliasesMax)
		if !found {
			continue
		}
		if len(addresses) == 0 {
			return nil // it was said
		}
		return t.toAddresses(addresses)
	}
	t.noSuchName(name)
	return nil
}

// dns is where the cluster's DNS is asked.
func (t *tracer) dns() netip.Addr {
	if s := t.Service(metav1.NamespaceSystem, clusterdns.Service); s != nil {
		if address, err := netip.ParseAddr(s.Spec.ClusterIP); err == nil {
			return address
		}
	}
	return servicerange.DNS(servicerange.Default)
}

// candidates are the names that a resolver tries, fully qualified.
func candidates(name string, searches []string, dots int) (all []string) {
	if strings.HasSuffix(name, ".") {
		return []string{strings.ToLower(name)}
	}
	for _, s := range searches {
		all = append(all, strings.ToLower(name+"."+strings.TrimSuffix(s, ".")+"."))
	}
	itself := strings.ToLower(name) + "."
	if strings.Count(name, ".") >= dots {
		return append([]string{itself}, all...)
	}
	return append(all, itself)
}

func dotsOf(options []string) int {
	dots := defaultDots
	for _, o := range options {
		_, _ = fmt.Sscanf(o, "ndots:%d", &dots) // what is no number leaves it
	}
	return dots
}

// resolve asks for one name. found: it exists; without addresses the step that says so stops everything.
func (t *tracer) resolve(name string, aliases int) (addresses []netip.Addr, found bool) {
	zone := records.Zone{Domain: clusterDomain + ".", Address: t.dns()}
	answer, ours := zone.Lookup(name, t.World)
	if !ours {
		return t.foreign(name)
	}
	if answer.Alias != "" {
		return t.follow(name, answer.Alias, aliases)
	}
	if len(answer.Addresses) > 0 {
		t.pass("dns", name, "has the address %s", joined(answer.Addresses))
		return answer.Addresses, true
	}
	return t.existsOnly(name, answer.Exists)
}

// existsOnly is a name without addresses. A Service with such a name is what was meant; other names leave the resolver searching.
func (t *tracer) existsOnly(name string, exists bool) ([]netip.Addr, bool) {
	labels := strings.Split(strings.TrimSuffix(name, ".svc."+clusterDomain+"."), ".")
	if !exists || len(labels) != 2 {
		return nil, false
	}
	s := t.Service(labels[1], labels[0])
	switch {
	case s == nil:
		return nil, false
	case s.Spec.ExternalName != "":
		t.stop("dns", serviceName(s), fmt.Sprintf("its externalName %q is no name", s.Spec.ExternalName), "set externalName to a DNS name")
	default:
		t.withoutEndpoints(s)
	}
	return nil, true
}

// follow goes on with the name to which an ExternalName leads.
func (t *tracer) follow(name, alias string, aliases int) ([]netip.Addr, bool) {
	t.pass("dns", name, "is another name for %s", alias)
	if aliases == 0 {
		t.stop("dns", name, "too many names lead to names", "let externalName be the last name")
		return nil, true
	}
	addresses, found := t.resolve(alias, aliases-1)
	if !found {
		t.stop("dns", alias, "the externalName does not resolve: there is no such name", "set externalName to a name that exists")
	}
	return addresses, true
}

// foreign asks for a name that is not the cluster's.
func (t *tracer) foreign(name string) ([]netip.Addr, bool) {
	if t.Lookup == nil {
		return nil, false
	}
	addresses, err := t.Lookup(name)
	if err != nil || len(addresses) == 0 {
		return nil, false
	}
	t.pass("dns", name, "is not the cluster's; asked from here, it has the address %s", joined(addresses))
	return addresses, true
}

// noSuchName looks for the Service that may be meant: one of another namespace needs that behind its name.
func (t *tracer) noSuchName(name string) {
	first, _, _ := strings.Cut(strings.ToLower(name), ".")
	says, change := "no record answers for it", "make a Service of this name, or ask for another"
	for _, s := range t.Services {
		if s.Name == first && s.Namespace != t.from.Namespace {
			says = fmt.Sprintf("no record answers for it in namespace %s; a Service %s is in namespace %s", t.from.Namespace, s.Name, s.Namespace)
			change = fmt.Sprintf("ask for %s.%s", s.Name, s.Namespace)
		}
	}
	t.stop("dns", name, says, change)
}

// toAddresses goes to all of a name's addresses: those of pods behind a headless Service are many.
func (t *tracer) toAddresses(addresses []netip.Addr) error {
	return t.inFamilies(addresses, func(of []netip.Addr) error {
		if len(of) == 1 || t.to.Port == 0 {
			return t.toAddress(of[0])
		}
		var endpoints []netip.AddrPort
		for _, a := range of {
			endpoints = append(endpoints, netip.AddrPortFrom(a, t.to.Port))
		}
		return t.toEach(endpoints, t.sourceTo(of[0]))
	})
}

func joined(addresses []netip.Addr) string {
	texts := make([]string, len(addresses))
	for i, a := range addresses {
		texts[i] = a.String()
	}
	return strings.Join(texts, ", ")
}
