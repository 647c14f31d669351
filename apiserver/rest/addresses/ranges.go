package addresses

import (
	"math/rand/v2"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/servicerange"
)

const (
	// defaultRange is the ServiceCIDR that shows the cluster's own ranges. Until it is there, the default one is in force all the same.
	defaultRange = "kubernetes"
	// drawnBits bounds which addresses of a range of IPv6 are drawn: its first 2^62.
	drawnBits = 62
)

var (
	serviceCIDRs = networkingv1.SchemeGroupVersion.WithResource("servicecidrs")
	configMaps   = corev1.SchemeGroupVersion.WithResource("configmaps")
)

// addressRange is one prefix of a ServiceCIDR.
type addressRange struct {
	prefix netip.Prefix
	owner  string // the ServiceCIDR; empty: it is not there yet
}

// serviceRanges are those that may give addresses, and the cluster's own, whether they may or not: one of each family that the
// servers' flags have, the primary one first.
type serviceRanges struct {
	ready []addressRange
	own   []netip.Prefix
}

// rangesOf are the prefixes of all ServiceCIDRs, in order of their names.
func rangesOf(v *storage.View) (ranges serviceRanges, err error) {
	for obj, err := range v.Snapshot(serviceCIDRs).All("") {
		if err != nil {
			return serviceRanges{}, err
		}
		cidr := obj.(*networkingv1.ServiceCIDR)
		for _, text := range cidr.Spec.CIDRs {
			prefix, err := netip.ParsePrefix(text)
			if err != nil {
				continue
			}
			if cidr.Name == defaultRange {
				ranges.own = append(ranges.own, prefix.Masked())
			}
			if isReady(cidr) {
				ranges.ready = append(ranges.ready, addressRange{prefix.Masked(), cidr.Name})
			}
		}
	}
	if len(ranges.own) == 0 {
		ranges.own = []netip.Prefix{servicerange.Default}
		ranges.ready = append(ranges.ready, addressRange{servicerange.Default, ""})
	}
	if hasIPv4Only(v) {
		ranges.own = slices.DeleteFunc(ranges.own, func(p netip.Prefix) bool { return p.Addr().Is6() })
	}
	return ranges, nil
}

// hasIPv4Only reports whether the network in force, which is that of the servers' flags, has no IPv6. Somebody may have given the
// cluster's own ServiceCIDR such a range all the same: no agent serves it, and upstream's servers give nothing of it either.
func hasIPv4Only(v *storage.View) bool {
	object, err := v.Snapshot(configMaps).Get(metav1.NamespaceSystem, servicerange.ConfigMap)
	inForce, ok := object.(*corev1.ConfigMap)
	if err != nil || !ok {
		return false // nobody has said it yet
	}
	_, six, ok := servicerange.Split(inForce.Data[servicerange.ConfigMapKey])
	return ok && !six.IsValid()
}

// families are those of the cluster's own ranges. Further ranges of another family give nothing, as upstream.
func (r serviceRanges) families() (families []corev1.IPFamily) {
	for _, prefix := range r.own {
		families = append(families, familyOf(prefix.Addr().String()))
	}
	return families
}

// of are the ranges of a family that may give addresses.
func (r serviceRanges) of(family corev1.IPFamily) []addressRange {
	return slices.DeleteFunc(slices.Clone(r.ready), func(a addressRange) bool { return familyOf(a.prefix.Addr().String()) != family })
}

// reserves reports whether the address is that of the API's own Service or of the cluster's DNS, which nobody draws from any range.
func (r serviceRanges) reserves(ip netip.Addr) bool {
	return slices.ContainsFunc(r.own, func(own netip.Prefix) bool { return ip == servicerange.API(own) || ip == servicerange.DNS(own) })
}

// isReady: what is being deleted is not, and what nobody has judged yet is, as upstream.
func isReady(cidr *networkingv1.ServiceCIDR) bool {
	if cidr.DeletionTimestamp != nil {
		return false
	}
	for _, c := range cidr.Status.Conditions {
		if c.Type == networkingv1.ServiceCIDRConditionReady {
			return c.Status == metav1.ConditionTrue
		}
	}
	return true
}

// claim makes the write depend on the range being as it was seen: whoever deletes a ServiceCIDR waits for no address that
// is given out afterwards.
func (r addressRange) claim(v *storage.View) error {
	if r.owner == "" {
		return nil
	}
	_, err := v.Require(serviceCIDRs, "", r.owner)
	return err
}

// holds reports whether the range may give the address: not the network's own (of IPv6, the routers'), nor in IPv4 that of all its hosts.
func (r addressRange) holds(ip netip.Addr) bool {
	return r.prefix.Contains(ip) && ip != r.prefix.Addr() && (ip.Is6() || ip != r.at(r.size()-1))
}

// size is how many addresses there are to draw from, with those that are not given.
func (r addressRange) size() uint64 {
	return 1 << min(r.prefix.Addr().BitLen()-r.prefix.Bits(), drawnBits)
}

// at is the address with that number in the range.
func (r addressRange) at(n uint64) netip.Addr {
	bytes := r.prefix.Addr().AsSlice()
	for i := len(bytes) - 1; n > 0; i-- {
		bytes[i] |= byte(n)
		n >>= 8
	}
	ip, _ := netip.AddrFromSlice(bytes)
	return ip
}

// draw is any of the range's addresses; false: it has none to give.
func (r addressRange) draw() (netip.Addr, bool) {
	if r.size() < 2 {
		return netip.Addr{}, false
	}
	ip := r.at(rand.Uint64N(r.size()))
	return ip, r.holds(ip)
}
