package addresses

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/servicerange"
)

var (
	portDraws   = 1 << 12 // random draws before the range counts as full
	nodePortMin = int32(servicerange.NodePortMin)
	nodePortMax = int32(servicerange.NodePortMax)
)

const (
	clusterIPPool = "clusterips"
	nodePortPool  = "nodeports"
)

// Allocator gives out what Services need exclusively. Node ports that the Book reserves are not drawn; nil reserves none.
type Allocator struct{ Reserved *reserved.Book }

// Allocate claims the cluster addresses and node ports that a Service newly
// holds and releases those it no longer does. The claims are keys in the same
// transaction, so no two Services can ever hold the same one.
func (a Allocator) Allocate(v *storage.View, o, cur resource.Object) (claims, releases []string, err error) {
	var held, wanted []string
	var before, after *corev1.Service
	if cur != nil {
		before = cur.(*corev1.Service)
		held = serviceClaims(before)
	}
	if o != nil {
		after = o.(*corev1.Service)
		if err := refuseTaken(v, after, held); err != nil {
			return nil, nil, err
		}
		if err := a.assign(v, before, after); err != nil {
			return nil, nil, err
		}
		wanted = serviceClaims(after)
	}
	return minus(wanted, held), minus(held, wanted), show(v, before, after)
}

func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// serviceClaims lists all that a Service holds.
func serviceClaims(s *corev1.Service) []string {
	var claims []string
	for _, ip := range addressesOf(s) {
		claims = append(claims, addressClaim(ip))
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

func portClaim(port int32) string { return storage.ClaimKey(nodePortPool, strconv.Itoa(int(port))) }

// refuseTaken answers a client that asked for values somebody else holds.
func refuseTaken(v *storage.View, s *corev1.Service, held []string) error {
	taken := func(claim string) bool { return !slices.Contains(held, claim) && v.Claimed(claim) != "" }
	if err := refuseTakenAddresses(v, s, held); err != nil {
		return err
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

func nodePortPath(i int) *field.Path {
	return field.NewPath("spec", "ports").Index(i).Child("nodePort")
}

func invalidService(o resource.Object, err *field.Error) error {
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, o.GetName(), field.ErrorList{err})
}

func (a Allocator) assign(v *storage.View, before, s *corev1.Service) error {
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = "", nil
		return nil
	}
	ranges, err := rangesOf(v)
	if err != nil {
		return err
	}
	if err := assignFamilies(before, s, ranges.families()); err != nil {
		return err
	}
	if err := assignClusterIPs(v, ranges, before, s); err != nil {
		return err
	}
	drawn, err := checkNodePorts(before, s)
	if err != nil {
		return err
	}
	if wantsNodePorts(s) {
		if err := a.assignNodePorts(v, s, drawn); err != nil {
			return err
		}
	}
	return a.assignHealthPort(v, s, drawn)
}

func wantsNodePorts(s *corev1.Service) bool {
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer {
		return s.Spec.AllocateLoadBalancerNodePorts == nil || *s.Spec.AllocateLoadBalancerNodePorts
	}
	return s.Spec.Type == corev1.ServiceTypeNodePort
}

// checkNodePorts returns the ports that the client asked for, if they are in the range and the health port is none of the others. What the
// Service had before it keeps.
func checkNodePorts(before, s *corev1.Service) (asked map[int32]bool, err error) {
	asked = map[int32]bool{}
	had, hadHealth := portsOf(before)
	check := func(port int32, path *field.Path) {
		if asked[port] = true; port != 0 && (port < nodePortMin || port > nodePortMax) && !had[port] && port != hadHealth && err == nil {
			err = invalidService(s, field.Invalid(path, port,
				fmt.Sprintf("provided port is not in the valid range. The range of valid ports is %d-%d", nodePortMin, nodePortMax)))
		}
	}
	for i := range s.Spec.Ports {
		check(s.Spec.Ports[i].NodePort, nodePortPath(i))
	}
	health := s.Spec.HealthCheckNodePort
	if health != 0 && asked[health] && !(had[health] && health == hadHealth) && err == nil {
		err = invalidService(s, field.Invalid(healthPortPath(), health, "provided port is already allocated"))
	}
	check(health, healthPortPath())
	return asked, err
}

// portsOf are the node ports of a Service, which may be nil.
func portsOf(s *corev1.Service) (ports map[int32]bool, health int32) {
	ports = map[int32]bool{}
	if s == nil {
		return ports, 0
	}
	for _, p := range s.Spec.Ports {
		ports[p.NodePort] = true
	}
	return ports, s.Spec.HealthCheckNodePort
}

func healthPortPath() *field.Path { return field.NewPath("spec", "healthCheckNodePort") }

// assignNodePorts draws a port for each entry without one. Entries that differ in
// protocol only share a number, as clients of DNS expect.
func (a Allocator) assignNodePorts(v *storage.View, s *corev1.Service, drawn map[int32]bool) error {
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if p.NodePort == 0 {
			p.NodePort = a.twinNodePort(s, p)
		}
		if p.NodePort == 0 {
			var err error
			if p.NodePort, err = a.drawNodePort(v, p.Protocol, drawn); err != nil {
				return err
			}
		}
	}
	return nil
}

// twinNodePort is the node port of an entry with the same port and another protocol; 0: there is none, or it is reserved for this one.
func (a Allocator) twinNodePort(s *corev1.Service, p *corev1.ServicePort) int32 {
	for _, other := range s.Spec.Ports {
		if other.Port == p.Port && other.Protocol != p.Protocol && other.NodePort != 0 && !a.reserves(p.Protocol, other.NodePort) {
			return other.NodePort
		}
	}
	return 0
}

// assignHealthPort draws the port on which a load balancer asks nodes for local endpoints.
func (a Allocator) assignHealthPort(v *storage.View, s *corev1.Service, drawn map[int32]bool) (err error) {
	local := s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
	if s.Spec.Type == corev1.ServiceTypeLoadBalancer && local && s.Spec.HealthCheckNodePort == 0 {
		s.Spec.HealthCheckNodePort, err = a.drawNodePort(v, corev1.ProtocolTCP, drawn)
	}
	return err
}

// drawNodePort avoids the host ports of pods, whose packets a node port would take, as long as that leaves some: nodes tell of them, and a
// stolen one could tell of all.
func (a Allocator) drawNodePort(v *storage.View, protocol corev1.Protocol, drawn map[int32]bool) (int32, error) {
	for i := range portDraws {
		port := nodePortMin + rand.Int32N(nodePortMax-nodePortMin+1)
		avoided := i < portDraws/2 && a.Reserved != nil && a.Reserved.Told(reserved.Port{Protocol: protocol, Number: port})
		if !drawn[port] && v.Claimed(portClaim(port)) == "" && !a.reserves(protocol, port) && !avoided {
			drawn[port] = true
			return port, nil
		}
	}
	return 0, apierrors.NewInternalError(fmt.Errorf("no free node port left in %d-%d", nodePortMin, nodePortMax))
}

// reserves reports whether some machine of the cluster has the port for itself. Ports that users write admission judges.
func (a Allocator) reserves(protocol corev1.Protocol, number int32) bool {
	if a.Reserved == nil {
		return false
	}
	_, taken := a.Reserved.Anywhere(reserved.Port{Protocol: protocol, Number: number})
	return taken
}
