package rest

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// The ranges that Services draw from. The first address is the API's own Service
// and is never drawn; 10.96.0.10 is kept for DNS.
var (
	serviceCIDR     = netip.MustParsePrefix("10.96.0.0/16")
	reservedDNS     = netip.MustParseAddr("10.96.0.10")
	kubernetesAddr  = netip.MustParseAddr("10.96.0.1")
	addressDraws    = 1 << 12 // random draws before the range counts as full
	nodePortMin     = int32(30000)
	nodePortMax     = int32(32767)
	serviceResource = schema.GroupResource{Resource: "services"}
)

const (
	clusterIPPool = "clusterips"
	nodePortPool  = "nodeports"
)

// allocators are the kinds whose writes claim exclusive values.
var allocators = map[schema.GroupResource]allocator{
	serviceResource: allocateService,
}

// allocateService claims the cluster address and node ports that a Service newly
// holds and releases those it no longer does. The claims are keys in the same
// transaction, so no two Services can ever hold the same one.
func allocateService(v *storage.View, o, cur resource.Object) (claims, releases []string, err error) {
	var held, wanted []string
	if cur != nil {
		held = serviceClaims(cur.(*corev1.Service))
	}
	if o != nil {
		service := o.(*corev1.Service)
		if err := assignService(v, service); err != nil {
			return nil, nil, err
		}
		wanted = serviceClaims(service)
	}
	claims, releases = minus(wanted, held), minus(held, wanted)
	return claims, releases, refuseTaken(v, o, claims)
}

func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// serviceClaims lists all that a Service holds.
func serviceClaims(s *corev1.Service) []string {
	var claims []string
	if ip := s.Spec.ClusterIP; ip != "" && ip != corev1.ClusterIPNone {
		claims = append(claims, storage.ClaimKey(clusterIPPool, ip))
	}
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 {
			claims = append(claims, nodePortClaim(p))
		}
	}
	slices.Sort(claims)
	return slices.Compact(claims)
}

func nodePortClaim(p corev1.ServicePort) string {
	return storage.ClaimKey(nodePortPool, string(p.Protocol)+"-"+strconv.Itoa(int(p.NodePort)))
}

// refuseTaken answers a client that asked for a value somebody else holds.
func refuseTaken(v *storage.View, o resource.Object, claims []string) error {
	for _, claim := range claims {
		if owner := v.Claimed(claim); owner != "" {
			return invalidService(o, field.Invalid(field.NewPath("spec"), claim, "provided IP or port is already allocated"))
		}
	}
	return nil
}

func invalidService(o resource.Object, err *field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, o.GetName(), field.ErrorList{err})
}

func assignService(v *storage.View, s *corev1.Service) error {
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil
		return nil
	}
	if err := assignClusterIP(v, s); err != nil {
		return err
	}
	if s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		return assignNodePorts(v, s)
	}
	for i := range s.Spec.Ports {
		s.Spec.Ports[i].NodePort = 0
	}
	return nil
}

func assignClusterIP(v *storage.View, s *corev1.Service) error {
	if s.Spec.ClusterIP == "" {
		ip, err := drawAddress(v)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		s.Spec.ClusterIP = ip.String()
	} else if s.Spec.ClusterIP != corev1.ClusterIPNone {
		ip, err := netip.ParseAddr(s.Spec.ClusterIP)
		if err != nil || !serviceCIDR.Contains(ip) {
			return invalidService(s, field.Invalid(field.NewPath("spec", "clusterIPs"), s.Spec.ClusterIP,
				fmt.Sprintf("failed to allocate IP %s: the provided IP is not in the valid range. The range of valid IPs is %s", s.Spec.ClusterIP, serviceCIDR)))
		}
	}
	s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	if len(s.Spec.IPFamilies) == 0 {
		s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	}
	if s.Spec.IPFamilyPolicy == nil {
		s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
	}
	return nil
}

func drawAddress(v *storage.View) (netip.Addr, error) {
	base := serviceCIDR.Addr().As4()
	for range addressDraws {
		n := 2 + rand.IntN(1<<16-3) // neither the network, the API's own nor the broadcast address
		ip := netip.AddrFrom4([4]byte{base[0], base[1], byte(n >> 8), byte(n)})
		if ip != reservedDNS && v.Claimed(storage.ClaimKey(clusterIPPool, ip.String())) == "" {
			return ip, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("no free address left in %s", serviceCIDR)
}

func assignNodePorts(v *storage.View, s *corev1.Service) error {
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if p.NodePort != 0 {
			if p.NodePort < nodePortMin || p.NodePort > nodePortMax {
				return invalidService(s, field.Invalid(field.NewPath("spec", "ports").Index(i).Child("nodePort"), p.NodePort,
					fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", nodePortMin, nodePortMax)))
			}
			continue
		}
		if err := drawNodePort(v, s, p); err != nil {
			return err
		}
	}
	return nil
}

func drawNodePort(v *storage.View, s *corev1.Service, p *corev1.ServicePort) error {
	for range addressDraws {
		p.NodePort = nodePortMin + rand.Int32N(nodePortMax-nodePortMin+1)
		if v.Claimed(nodePortClaim(*p)) == "" && !usedTwice(s, p) {
			return nil
		}
	}
	return apierrors.NewInternalError(fmt.Errorf("no free node port left in %d-%d", nodePortMin, nodePortMax))
}

func usedTwice(s *corev1.Service, p *corev1.ServicePort) bool {
	n := 0
	for _, other := range s.Spec.Ports {
		if other.NodePort == p.NodePort && other.Protocol == p.Protocol {
			n++
		}
	}
	return n > 1
}
