package addresses

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

var (
	addressDraws = 1 << 12 // random draws before the ranges count as full
	errFull      = errors.New("range is full")
)

// addressesOf are the cluster addresses that a Service holds.
func addressesOf(s *corev1.Service) []string {
	switch {
	case s == nil || s.Spec.Type == corev1.ServiceTypeExternalName || s.Spec.ClusterIP == "" || s.Spec.ClusterIP == corev1.ClusterIPNone:
		return nil
	case len(s.Spec.ClusterIPs) == 0:
		return []string{s.Spec.ClusterIP}
	}
	return s.Spec.ClusterIPs
}

func addressClaim(ip string) string { return storage.ClaimKey(clusterIPPool, ip) }

// assignClusterIPs draws an address for each family, or judges the one that is asked for. One that the Service has had before stays,
// also while its range is being deleted.
func assignClusterIPs(v *storage.View, ranges serviceRanges, before, s *corev1.Service) error {
	spec := &s.Spec
	if spec.ClusterIP == corev1.ClusterIPNone {
		spec.ClusterIPs = []string{spec.ClusterIP}
		return nil
	}
	ips, held := slices.Clone(spec.ClusterIPs), addressesOf(before)
	for i, family := range spec.IPFamilies {
		if i == len(ips) {
			ips = append(ips, "")
		}
		var err error
		switch {
		case ips[i] == "":
			ips[i], err = drawAddress(v, ranges, family, s)
		case !slices.Contains(held, ips[i]):
			err = judgeAddress(v, ranges.of(family), s, ips[i])
		}
		if err != nil {
			return err
		}
	}
	spec.ClusterIPs, spec.ClusterIP = ips, ips[0]
	return nil
}

// refuseTakenAddresses answers a client that asked for addresses that somebody else holds.
func refuseTakenAddresses(v *storage.View, s *corev1.Service, held []string) error {
	for _, ip := range addressesOf(s) {
		if slices.Contains(held, addressClaim(ip)) {
			continue
		}
		theirs, err := isTheirs(v, ip, s)
		if err != nil {
			return err
		}
		if theirs || v.Claimed(addressClaim(ip)) != "" {
			return refuseAddress(s, ip, "provided IP is already allocated")
		}
	}
	return nil
}

func judgeAddress(v *storage.View, ready []addressRange, s *corev1.Service, text string) error {
	ip, err := netip.ParseAddr(text)
	if err == nil {
		for _, r := range ready {
			if r.holds(ip) {
				return r.claim(v)
			}
		}
	}
	return refuseAddress(s, text, "the provided network does not match the current range")
}

func refuseAddress(s *corev1.Service, ip, why string) error {
	return invalidService(s, field.Invalid(specPath.Child("clusterIPs"), s.Spec.ClusterIPs,
		fmt.Sprintf("failed to allocate IP %s: %s", ip, why)))
}

// drawAddress takes any free address of any range of the family.
func drawAddress(v *storage.View, ranges serviceRanges, family corev1.IPFamily, s *corev1.Service) (string, error) {
	ready := ranges.of(family)
	for range addressDraws {
		if len(ready) == 0 {
			break
		}
		r := ready[rand.IntN(len(ready))]
		ip, drawn := r.draw()
		if !drawn || ranges.reserves(ip) || v.Claimed(addressClaim(ip.String())) != "" {
			continue
		}
		theirs, err := isTheirs(v, ip.String(), s)
		if err != nil {
			return "", err
		}
		if !theirs {
			return ip.String(), r.claim(v)
		}
	}
	return "", apierrors.NewInternalError(fmt.Errorf("failed to allocate a serviceIP for Service %q: %w", s.Name, errFull))
}
