package servicecidr

import (
	"net/netip"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Upstream's names.
const (
	finalizer = "networking.k8s.io/service-cidr-finalizer"
	manager   = "ipallocator.k8s.io"
	// deletionGrace is how long a range stays after its deletion was asked for, so that all servers know of it.
	deletionGrace = 10 * time.Second
)

type serviceCIDR = networkingv1.ServiceCIDR

// plan is what is to be done with one range.
type plan struct {
	add, remove bool              // the finalizer
	condition   *metav1.Condition // to be written; nil: it is as it should be
	again       time.Duration
}

// planOf is pure. all are the ranges that there are, used the addresses of Services.
func planOf(cidr *serviceCIDR, all []*serviceCIDR, used []netip.Addr, now time.Time) plan {
	held := slices.Contains(cidr.Finalizers, finalizer)
	ready := metav1.Condition{
		Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionTrue, Message: "Kubernetes Service CIDR is ready",
	}
	if cidr.DeletionTimestamp == nil && !held {
		return plan{add: true} // the change brings the next pass
	}
	if cidr.DeletionTimestamp == nil {
		return plan{condition: changed(cidr, ready, now)}
	}
	if !mayGo(cidr, all, used) {
		ready.Status, ready.Reason = metav1.ConditionFalse, networkingv1.ServiceCIDRReasonTerminating
		ready.Message = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"
		return plan{condition: changed(cidr, ready, now)}
	}
	if left := cidr.DeletionTimestamp.Add(deletionGrace).Sub(now); left > 0 {
		return plan{again: left}
	}
	return plan{remove: held}
}

// changed is the condition, if the range has another.
func changed(cidr *serviceCIDR, want metav1.Condition, now time.Time) *metav1.Condition {
	have := meta.FindStatusCondition(cidr.Status.Conditions, want.Type)
	if have != nil && have.Status == want.Status && have.Reason == want.Reason && have.Message == want.Message {
		return nil
	}
	want.LastTransitionTime = metav1.NewTime(now)
	return &want
}

// mayGo: others contain all of the range, or none of its addresses is its alone.
func mayGo(cidr *serviceCIDR, all []*serviceCIDR, used []netip.Addr) bool {
	prefixes := prefixesOf(cidr)
	if !slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return !isContained(cidr, p, all) }) {
		return true
	}
	return !slices.ContainsFunc(used, func(ip netip.Addr) bool {
		if !slices.ContainsFunc(prefixes, func(p netip.Prefix) bool { return gives(p, ip) }) {
			return false
		}
		return !slices.ContainsFunc(all, func(other *serviceCIDR) bool { return other.Name != cidr.Name && holds(other, ip) })
	})
}

// isContained reports whether another range has a prefix that is as large or larger.
func isContained(cidr *serviceCIDR, prefix netip.Prefix, all []*serviceCIDR) bool {
	return slices.ContainsFunc(all, func(other *serviceCIDR) bool {
		return other.Name != cidr.Name && slices.ContainsFunc(prefixesOf(other), func(p netip.Prefix) bool {
			return p.Overlaps(prefix) && p.Bits() <= prefix.Bits()
		})
	})
}

func overlap(a, b *serviceCIDR) bool {
	return slices.ContainsFunc(prefixesOf(a), func(p netip.Prefix) bool {
		return slices.ContainsFunc(prefixesOf(b), p.Overlaps)
	})
}

func holds(cidr *serviceCIDR, ip netip.Addr) bool {
	return slices.ContainsFunc(prefixesOf(cidr), func(p netip.Prefix) bool { return gives(p, ip) })
}

func prefixesOf(cidr *serviceCIDR) []netip.Prefix {
	var prefixes []netip.Prefix
	for _, text := range cidr.Spec.CIDRs {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			prefixes = append(prefixes, prefix.Masked())
		}
	}
	return prefixes
}

// gives reports whether a prefix gives an address to Services: all but the network's own and, in version 4, that of all its hosts.
func gives(prefix netip.Prefix, ip netip.Addr) bool {
	return prefix.Contains(ip) && ip != prefix.Addr() && (!ip.Is4() || prefix.Contains(ip.Next()))
}

// addressOf is the address that an IPAddress of a Service names; false: it is somebody else's.
func addressOf(o metav1.Object) (netip.Addr, bool) {
	if o.GetLabels()[networkingv1.LabelManagedBy] != manager {
		return netip.Addr{}, false
	}
	ip, err := netip.ParseAddr(o.GetName())
	return ip, err == nil
}
