package nettrace

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// sameFamily reports whether two addresses are of one version of IP.
func sameFamily(a, b netip.Addr) bool { return a.BitLen() == b.BitLen() }

func familyOf(address netip.Addr) string {
	if address.Is4() {
		return "IPv4"
	}
	return "IPv6"
}

// everywhere stands for all addresses of a machine.
func everywhere(like netip.Addr) netip.Addr {
	if like.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

// ofFamily is the first address of another one's family; invalid if there is none.
func ofFamily(like netip.Addr, all []netip.Addr) netip.Addr {
	i := slices.IndexFunc(all, func(a netip.Addr) bool { return sameFamily(a, like) })
	if i < 0 {
		return netip.Addr{}
	}
	return all[i]
}

// parsed leaves out what is no address.
func parsed(texts ...string) (all []netip.Addr) {
	for _, text := range texts {
		if address, err := netip.ParseAddr(text); err == nil {
			all = append(all, address.Unmap())
		}
	}
	return all
}

// addressesOf are a pod's, at most one of each family.
func addressesOf(p *corev1.Pod) []netip.Addr {
	if len(p.Status.PodIPs) == 0 {
		return parsed(p.Status.PodIP)
	}
	var texts []string
	for _, ip := range p.Status.PodIPs {
		texts = append(texts, ip.IP)
	}
	return parsed(texts...)
}

// internalAddresses are a node's.
func internalAddresses(n *corev1.Node) []netip.Addr {
	var texts []string
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			texts = append(texts, a.Address)
		}
	}
	return parsed(texts...)
}

// nodeAddress is the node's first one of the family.
func nodeAddress(n *corev1.Node, like netip.Addr) netip.Addr {
	if n == nil {
		return netip.Addr{}
	}
	return ofFamily(like, internalAddresses(n))
}

// bridgeAddresses are those of the node's bridge, at which its pods reach the machine too: the first of each of its ranges.
func bridgeAddresses(n *corev1.Node) (all []netip.Addr) {
	for _, cidr := range n.Spec.PodCIDRs {
		if p, err := netip.ParsePrefix(cidr); err == nil {
			all = append(all, p.Masked().Addr().Next())
		}
	}
	return all
}

// sourceTo is the address that the pod sends from; invalid if it has none of the family. A pod on its machine's network has the
// bridge's too.
func (t *tracer) sourceTo(to netip.Addr) netip.Addr {
	own := addressesOf(t.from)
	if n := t.node(t.from.Spec.NodeName); t.from.Spec.HostNetwork && n != nil {
		own = append(own, bridgeAddresses(n)...)
	}
	return ofFamily(to, own)
}

// inFamilies follows the addresses of each family that the pod has an address of, those of IPv4 first: a connection is made by one.
func (t *tracer) inFamilies(addresses []netip.Addr, follow func(of []netip.Addr) error) error {
	var parts [][]netip.Addr
	for _, family := range []netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		of := slices.DeleteFunc(slices.Clone(addresses), func(a netip.Addr) bool { return !sameFamily(a, family) })
		if len(of) > 0 && t.sourceTo(family).IsValid() {
			parts = append(parts, of)
		}
	}
	if len(parts) == 0 {
		t.withoutFamily(addresses...)
		return nil
	}
	return t.some(len(parts), func(i int) error { return follow(parts[i]) })
}

// withoutFamily is for addresses to which the pod has none to send from.
func (t *tracer) withoutFamily(to ...netip.Addr) {
	if len(to) == 0 {
		t.stop("service", t.to.String(), "the node has no address of the families of the Service", "give the machine such an address")
		return
	}
	t.stop("pod", podName(t.from), fmt.Sprintf("it has no address of %s, so it sends nothing to %s", familyOf(to[0]), joined(to)),
		"see whether the cluster has both families, and make the pod again")
}

// some follows several ways, of which a connection takes one.
func (t *tracer) some(ways int, follow func(int) error) error {
	before, failed := len(t.steps), 0
	for i := range ways {
		start := len(t.steps)
		if err := follow(i); err != nil {
			return err
		}
		if slices.ContainsFunc(t.steps[start:], func(s Step) bool { return s.Verdict == Stops }) {
			failed++
		}
	}
	for i := before; failed < ways && i < len(t.steps); i++ {
		if t.steps[i].Verdict == Stops {
			t.steps[i].Verdict = Partly
		}
	}
	return nil
}
