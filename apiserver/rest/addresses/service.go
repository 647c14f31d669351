package addresses

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
	ServiceCIDR  = netip.MustParsePrefix("10.96.0.0/16")
	reservedDNS  = netip.MustParseAddr("10.96.0.10")
	addressDraws = 1 << 12 // random draws before the range counts as full
	nodePortMin  = int32(30000)
	nodePortMax  = int32(32767)
)

const (
	clusterIPPool = "clusterips"
	nodePortPool  = "nodeports"
)

// Allocate claims the cluster address and node ports that a Service newly
// holds and releases those it no longer does. The claims are keys in the same
// transaction, so no two Services can ever hold the same one.
func Allocate(v *storage.View, o, cur resource.Object) (claims, releases []string, err error) {
	var held, wanted []string
	if cur != nil {
		held = serviceClaims(cur.(*corev1.Service))
	}
	if o != nil {
		service := o.(*corev1.Service)
		if err := refuseTaken(v, service, held); err != nil {
			return nil, nil, err
		}
		if err := assignService(v, service); err != nil {
			return nil, nil, err
		}
		wanted = serviceClaims(service)
	}
	return minus(wanted, held), minus(held, wanted), nil
}

func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// serviceClaims lists all that a Service holds.
func serviceClaims(s *corev1.Service) []string {
	var claims []string
	if hasAddress(s) {
		claims = append(claims, addressClaim(s.Spec.ClusterIP))
	}
	for _, p := range s.Spec.Ports {
		if p.NodePort != 0 {
			claims = append(claims, portClaim(p.NodePort))
		}
	}
	if s.Spec.HealthCheckNodePort != 0 {
		claims = append(claims, portClaim(s.Spec.HealthCheckNodePort))
	}
	slices.Sort(claims)
	return slices.Compact(claims) // ports of two protocols may share a number
}

func hasAddress(s *corev1.Service) bool {
	return s.Spec.Type != corev1.ServiceTypeExternalName && s.Spec.ClusterIP != "" && s.Spec.ClusterIP != corev1.ClusterIPNone
}

func addressClaim(ip string) string { return storage.ClaimKey(clusterIPPool, ip) }

func portClaim(port int32) string { return storage.ClaimKey(nodePortPool, strconv.Itoa(int(port))) }

// refuseTaken answers a client that asked for values somebody else holds.
func refuseTaken(v *storage.View, s *corev1.Service, held []string) error {
	taken := func(claim string) bool { return !slices.Contains(held, claim) && v.Claimed(claim) != "" }
	if hasAddress(s) && taken(addressClaim(s.Spec.ClusterIP)) {
		return refuseAddress(s, "provided IP is already allocated")
	}
	for i, p := range s.Spec.Ports {
		if p.NodePort != 0 && taken(portClaim(p.NodePort)) {
			return invalidService(s, field.Invalid(nodePortPath(i), p.NodePort, "provided port is already allocated"))
		}
	}
	if port := s.Spec.HealthCheckNodePort; port != 0 && taken(portClaim(port)) {
		return invalidService(s, field.Invalid(healthPortPath(), port, "provided port is already allocated"))
	}
	return nil
}

func refuseAddress(s *corev1.Service, why string) error {
	return invalidService(s, field.Invalid(field.NewPath("spec", "clusterIPs"), []string{s.Spec.ClusterIP},
		fmt.Sprintf("failed to allocate IP %s: %s", s.Spec.ClusterIP, why)))
}

func nodePortPath(i int) *field.Path {
	return field.NewPath("spec", "ports").Index(i).Child("nodePort")
}

func invalidService(o resource.Object, err *field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, o.GetName(), field.ErrorList{err})
}

func assignService(v *storage.View, s *corev1.Service) error {
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil
		return nil
	}
	if err := assignFamilies(s); err != nil {
		return err
	}
	if err := assignClusterIP(v, s); err != nil {
		return err
	}
	drawn, err := checkNodePorts(s)
	if err != nil {
		return err
	}
	if wantsNodePorts(s) {
		if err := assignNodePorts(v, s, drawn); err != nil {
			return err
		}
	}
	return assignHealthPort(v, s, drawn)
}

func wantsNodePorts(s *corev1.Service) bool {
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		return s.Spec.AllocateLoadBalancerNodePorts == nil || *s.Spec.AllocateLoadBalancerNodePorts
	}
	return s.Spec.Type == corev1.ServiceTypeNodePort
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
		if err != nil || !ServiceCIDR.Contains(ip) {
			return refuseAddress(s, fmt.Sprintf("the provided IP (%s) is not in the valid range. The range of valid IPs is %s", s.Spec.ClusterIP, ServiceCIDR))
		}
	}
	s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	return nil
}

func drawAddress(v *storage.View) (netip.Addr, error) {
	base := ServiceCIDR.Addr().As4()
	for range addressDraws {
		n := 2 + rand.IntN(1<<16-3) // neither the network, the API's own nor the broadcast address
		ip := netip.AddrFrom4([4]byte{base[0], base[1], byte(n >> 8), byte(n)})
		if ip != reservedDNS && v.Claimed(storage.ClaimKey(clusterIPPool, ip.String())) == "" {
			return ip, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("no free address left in %s", ServiceCIDR)
}

// checkNodePorts returns the ports that the client asked for, if they are in the range.
func checkNodePorts(s *corev1.Service) (asked map[int32]bool, err error) {
	asked = map[int32]bool{}
	check := func(port int32, path *field.Path) {
		if asked[port] = true; port != 0 && (port < nodePortMin || port > nodePortMax) && err == nil {
			err = invalidService(s, field.Invalid(path, port,
				fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", nodePortMin, nodePortMax)))
		}
	}
	for i := range s.Spec.Ports {
		check(s.Spec.Ports[i].NodePort, nodePortPath(i))
	}
	check(s.Spec.HealthCheckNodePort, healthPortPath())
	return asked, err
}

func healthPortPath() *field.Path { return field.NewPath("spec", "healthCheckNodePort") }

// assignNodePorts draws a port for each entry without one. Entries that differ in
// protocol only share a number, as clients of DNS expect.
func assignNodePorts(v *storage.View, s *corev1.Service, drawn map[int32]bool) error {
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if p.NodePort == 0 {
			p.NodePort = twinNodePort(s, p)
		}
		if p.NodePort == 0 {
			var err error
			if p.NodePort, err = drawNodePort(v, drawn); err != nil {
				return err
			}
		}
	}
	return nil
}

// twinNodePort is the node port of an entry with the same port and another protocol.
func twinNodePort(s *corev1.Service, p *corev1.ServicePort) int32 {
	for _, other := range s.Spec.Ports {
		if other.Port == p.Port && other.Protocol != p.Protocol && other.NodePort != 0 {
			return other.NodePort
		}
	}
	return 0
}

// assignHealthPort draws the port on which a load balancer asks nodes for local endpoints.
func assignHealthPort(v *storage.View, s *corev1.Service, drawn map[int32]bool) (err error) {
	local := s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer && local && s.Spec.HealthCheckNodePort == 0 {
		s.Spec.HealthCheckNodePort, err = drawNodePort(v, drawn)
	}
	return err
}

func drawNodePort(v *storage.View, drawn map[int32]bool) (int32, error) {
	for range addressDraws {
		port := nodePortMin + rand.Int32N(nodePortMax-nodePortMin+1)
		if !drawn[port] && v.Claimed(portClaim(port)) == "" {
			drawn[port] = true
			return port, nil
		}
	}
	return 0, apierrors.NewInternalError(fmt.Errorf("no free node port left in %d-%d", nodePortMin, nodePortMax))
}
