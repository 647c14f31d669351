package addresses

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/servicerange"
)

// defaultRange is the ServiceCIDR that shows the cluster's own range. Until it is there, that range is in force all the same.
const defaultRange = "kubernetes"

var serviceCIDRs = networkingv1.SchemeGroupVersion.WithResource("servicecidrs")

// addressRange is one prefix of a ServiceCIDR.
type addressRange struct {
	prefix netip.Prefix
	owner  string // the ServiceCIDR; empty: it is not there yet
}

// serviceRanges are those that may give addresses, and the cluster's own, whether it may or not.
type serviceRanges struct {
	ready []addressRange
	own   netip.Prefix
}

// rangesOf are the prefixes of version 4 of all ServiceCIDRs, in order of their names.
func rangesOf(v *storage.View) (ranges serviceRanges, err error) {
	for obj, err := range v.Snapshot(serviceCIDRs).All("") {
		if err != nil {
			return serviceRanges{}, err
		}
		cidr := obj.(*networkingv1.ServiceCIDR)
		for _, text := range cidr.Spec.CIDRs {
			prefix, err := netip.ParsePrefix(text)
			if err != nil || !prefix.Addr().Is4() {
				continue
			}
			if cidr.Name == defaultRange {
				ranges.own = prefix.Masked()
			}
			if isReady(cidr) {
				ranges.ready = append(ranges.ready, addressRange{prefix.Masked(), cidr.Name})
			}
		}
	}
	if !ranges.own.IsValid() {
		ranges.own = servicerange.Default
		ranges.ready = append(ranges.ready, addressRange{ranges.own, ""})
	}
	return ranges, nil
}

// reserves reports whether the address is that of the API's own Service or of the cluster's DNS, which nobody draws from any range.
func (r serviceRanges) reserves(ip netip.Addr) bool {
	return ip == servicerange.API(r.own) || ip == servicerange.DNS(r.own)
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

// holds reports whether the range may give the address: neither the network's own nor that of all its hosts.
func (r addressRange) holds(ip netip.Addr) bool {
	return r.prefix.Contains(ip) && ip != r.prefix.Addr() && ip != r.at(r.size()-1)
}

func (r addressRange) size() uint64 { return 1 << (32 - r.prefix.Bits()) }

// at is the address with that number in the range.
func (r addressRange) at(n uint64) netip.Addr {
	base := r.prefix.Addr().As4()
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, binary.BigEndian.Uint32(base[:])+uint32(n))))
}

// draw is any of the range's addresses; false: it has none to give.
func (r addressRange) draw() (netip.Addr, bool) {
	if r.size() <= 2 {
		return netip.Addr{}, false
	}
	return r.at(1 + rand.Uint64N(r.size()-2)), true
}
