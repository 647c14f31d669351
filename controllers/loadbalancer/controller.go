package loadbalancer

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// all is the value under which byBalancer files Services.
const all = "all"

// byBalancer finds the Services of the type, those that were of it, and those with external addresses.
var byBalancer = reconcile.Index{Name: "setpoint/balancer", Keys: func(o metav1.Object) []string {
	if s, ok := o.(*corev1.Service); ok && concerned(s) {
		return []string{all}
	}
	return nil
}}

func concerned(s *corev1.Service) bool {
	return s.Spec.Type == corev1.ServiceTypeLoadBalancer || len(s.Status.LoadBalancer.Ingress) > 0 || len(s.Spec.ExternalIPs) > 0 ||
		meta.FindStatusCondition(s.Status.Conditions, AddressTaken) != nil
}

// byService finds the slices of a Service, whoever keeps them.
var byService = reconcile.Index{Name: "setpoint/balanced", Keys: func(o metav1.Object) []string {
	return []string{o.GetNamespace() + "/" + o.GetLabels()[discoveryv1.LabelServiceName]}
}}

var (
	services = reconcile.Services.By(byBalancer)
	slicesOf = reconcile.EndpointSlices.By(byService)
	quotas   = reconcile.KindOf[*corev1.ResourceQuota](corev1.SchemeGroupVersion.WithResource("resourcequotas"))
)

// New gives addresses of the source.
func New(source Source) reconcile.Controller {
	return reconcile.Controller{
		Name:    "service-lb-controller",
		Account: "service-controller",
		Reads:   []reconcile.Read{services, slicesOf, reconcile.Nodes, quotas},
		Run: func(ctx context.Context, env *reconcile.Env) error {
			return run(ctx, &controller{
				env: env, source: source, services: services.From(env), slices: slicesOf.From(env), nodes: reconcile.Nodes.From(env),
				quotas: quotas.From(env),
				told:   map[types.UID]string{},
			})
		},
	}
}

type controller struct {
	env      *reconcile.Env
	source   Source
	services reconcile.Cache[*corev1.Service]
	slices   reconcile.Cache[*discoveryv1.EndpointSlice]
	nodes    reconcile.Cache[*corev1.Node]
	quotas   reconcile.Cache[*corev1.ResourceQuota]
	// told is why a Service lacks an address, as its last event says. There is one key, so nobody else uses it.
	told map[types.UID]string
}

// everything is the only key: what one Service gets depends on the others.
var everything = []reconcile.Key{{Name: all}}

func run(ctx context.Context, c *controller) error {
	return reconcile.Run(ctx, reconcile.Config{
		Name: "loadbalancer", Queue: "service", Reconcile: c.reconcile, Rests: reconcile.RestsWhole, Env: c.env,
		Sources: []reconcile.Source{
			reconcile.Changes(c.services, serviceChanged), reconcile.Changes(c.nodes, nodeChanged), reconcile.Changes(c.slices, c.sliceChanged),
			reconcile.Changes(c.quotas, quotaChanged),
		},
	})
}

func serviceChanged(before, after metav1.Object) []reconcile.Key {
	for _, o := range []metav1.Object{before, after} {
		if s, ok := o.(*corev1.Service); ok && s != nil && concerned(s) {
			return everything
		}
	}
	return nil
}

func nodeChanged(before, after metav1.Object) []reconcile.Key {
	if addressOf(before) == addressOf(after) && !reserved.Changed(before, after) {
		return nil
	}
	return everything
}

func quotaChanged(before, after metav1.Object) []reconcile.Key {
	if saysLoadBalancers(before) == saysLoadBalancers(after) {
		return nil
	}
	return everything
}

func addressOf(o metav1.Object) string {
	n, ok := o.(*corev1.Node)
	if !ok || n == nil {
		return ""
	}
	if !balances(n) {
		return ""
	}
	return strings.Join(internalAddresses(n, corev1.IPv4Protocol, corev1.IPv6Protocol), " ")
}

// sliceChanged matters for Services that want nodes with endpoints only, or whose endpoints may be who has their port, and if it tells of
// other servers.
func (c *controller) sliceChanged(before, after metav1.Object) []reconcile.Key {
	o := after
	if o == nil {
		o = before
	}
	if reserved.Changed(before, after) {
		return everything
	}
	s, err := c.services.Get(reconcile.Key{Namespace: o.GetNamespace(), Name: o.GetLabels()[discoveryv1.LabelServiceName]})
	if err != nil || !concerned(s) {
		return nil
	}
	missing := meta.FindStatusCondition(s.Status.Conditions, AddressMissing) != nil
	if !missing && s.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
		return nil
	}
	return everything
}

func (c *controller) reconcile(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
	found, err := c.services.ByIndex(byBalancer, all)
	if err != nil {
		return 0, err
	}
	nodes, err := c.nodes.List("", labels.Everything())
	if err != nil {
		return 0, err
	}
	servers, _ := c.slices.Get(reserved.Servers) // without them the usual ports are reserved
	var errs []error
	told := map[types.UID]string{}
	wrote := map[*corev1.Service]bool{}
	for _, d := range c.source.plan(world{found, nodes, c.hasEndpoint, c.isEndpoint, c.hasQuota, reserved.Of(nodes, servers)}) {
		changed, err := c.write(ctx, d)
		errs, wrote[d.service] = append(errs, err), changed
		if d.reason != "" {
			told[d.service.UID] = d.message
			c.tell(d)
		}
	}
	c.told = told
	lost := losers(found)
	for _, s := range found {
		if !wrote[s] { // else its next version comes by itself
			errs = append(errs, c.writeTaken(ctx, s, lost[s]))
		}
	}
	return 0, errors.Join(errs...)
}

// hasQuota reports whether one says how many load balancers the namespace may have. One that cannot be read says nothing.
func (c *controller) hasQuota(namespace string) bool {
	all, _ := c.quotas.List(namespace, labels.Everything())
	return slices.ContainsFunc(all, func(q *corev1.ResourceQuota) bool { return saysLoadBalancers(q) })
}

// tell says once why a Service lacks an address.
func (c *controller) tell(d decision) {
	if c.told[d.service.UID] != d.message {
		c.env.Events.Event(d.service, corev1.EventTypeWarning, d.reason, d.message)
	}
}

func (c *controller) hasEndpoint(s *corev1.Service, node string) bool {
	found, err := c.slices.ByIndex(byService, s.Namespace+"/"+s.Name)
	return err == nil && slices.ContainsFunc(found, func(slice *discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool {
			return ptr.Deref(e.NodeName, "") == node && ptr.Deref(e.Conditions.Ready, true)
		})
	})
}

func (c *controller) isEndpoint(s *corev1.Service, ip netip.Addr, port reserved.Port) bool {
	found, err := c.slices.ByIndex(byService, s.Namespace+"/"+s.Name)
	return err == nil && slices.ContainsFunc(found, func(slice *discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(reserved.OfSlice(slice), func(c reserved.Claim) bool { return c.ID() == reserved.ID{Address: ip, Port: port} })
	})
}

// write changes the status if it says something else.
func (c *controller) write(ctx context.Context, d decision) (changed bool, err error) {
	next := d.service.DeepCopy()
	next.Status.LoadBalancer.Ingress = ingress(d.addresses)
	if d.fromPool {
		meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
			Type: FromPool, Status: metav1.ConditionTrue, Reason: "Allocated", ObservedGeneration: d.service.Generation,
			Message: "nodes announce " + strings.Join(d.addresses, " and "),
		})
	} else {
		meta.RemoveStatusCondition(&next.Status.Conditions, FromPool)
	}
	if d.reason != "" {
		meta.SetStatusCondition(&next.Status.Conditions, metav1.Condition{
			Type: AddressMissing, Status: metav1.ConditionTrue, Reason: d.reason, ObservedGeneration: d.service.Generation, Message: d.message,
		})
	} else {
		meta.RemoveStatusCondition(&next.Status.Conditions, AddressMissing)
	}
	if same(d.service, next) {
		return false, nil
	}
	_, err = c.env.Client.CoreV1().Services(next.Namespace).UpdateStatus(reconcile.WithCause(ctx, d.service), next, metav1.UpdateOptions{})
	return true, err
}

func ingress(addresses []string) []corev1.LoadBalancerIngress {
	var all []corev1.LoadBalancerIngress
	for _, ip := range addresses {
		all = append(all, corev1.LoadBalancerIngress{IP: ip, IPMode: ptr.To(corev1.LoadBalancerIPModeVIP)})
	}
	return all
}

func same(a, b *corev1.Service) bool {
	equal := func(x, y corev1.LoadBalancerIngress) bool {
		return x.IP == y.IP && x.Hostname == y.Hostname && ptr.Equal(x.IPMode, y.IPMode) && len(x.Ports) == len(y.Ports)
	}
	return slices.EqualFunc(a.Status.LoadBalancer.Ingress, b.Status.LoadBalancer.Ingress, equal) &&
		meta.IsStatusConditionTrue(a.Status.Conditions, FromPool) == meta.IsStatusConditionTrue(b.Status.Conditions, FromPool) &&
		missing(a) == missing(b)
}

// missing is why a Service lacks an address, as its status says.
func missing(s *corev1.Service) string {
	c := meta.FindStatusCondition(s.Status.Conditions, AddressMissing)
	if c == nil {
		return ""
	}
	return c.Reason + " " + c.Message
}
