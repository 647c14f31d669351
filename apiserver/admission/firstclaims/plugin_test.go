package firstclaims

import (
	"net/netip"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/internal/reserved"
)

func indexer(t *testing.T, objects ...any) cache.Indexer {
	t.Helper()
	i := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, o := range objects {
		if err := i.Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

// made is an object's name, and when it was made, in seconds.
func made(namespace, name string, second int64) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(time.Unix(second, 0))}
}

func balancer(namespace string, second int64, port int32, external ...string) *corev1.Service {
	return &corev1.Service{ObjectMeta: made(namespace, "web", second), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, ExternalIPs: external, Ports: []corev1.ServicePort{{Port: port, Protocol: corev1.ProtocolTCP}},
	}}
}

func ingress(namespace string, second int64, class string, hosts ...string) *networkingv1.Ingress {
	i := &networkingv1.Ingress{ObjectMeta: made(namespace, "web", second), Spec: networkingv1.IngressSpec{IngressClassName: &class}}
	for _, host := range hosts {
		i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: host})
	}
	return i
}

func with[T any](o T, change func(T)) T { change(o); return o }

// TestOlderObjectsTakeNothing: b has port 443 of the nodes, an external address, a host and the default backend; a has older objects.
func TestOlderObjectsTakeNothing(t *testing.T) {
	has := ingress("b", 20, "ours", "Shop.example.com")
	has.Spec.DefaultBackend = &networkingv1.IngressBackend{}
	p := Plugin{
		Services:  corelisters.NewServiceLister(indexer(t, balancer("b", 20, 443, "203.0.113.5"))),
		Ingresses: networkinglisters.NewIngressLister(indexer(t, has)),
		Classes: networkinglisters.NewIngressClassLister(indexer(t,
			&networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "ours"}, Spec: networkingv1.IngressClassSpec{Controller: ingressController}},
			&networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Spec: networkingv1.IngressClassSpec{Controller: "example.com/other"}})),
		Reserved: reserved.New(), AtNodes: true,
	}
	pooled := p
	pooled.AtNodes = false
	inside := func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeClusterIP }
	elsewhere := func(s *corev1.Service) { s.Spec.LoadBalancerClass = new("example.com/other") }
	for name, c := range map[string]struct {
		p        Plugin
		now, old runtime.Object
		groups   []string
		words    string
	}{
		"a port": {p, balancer("a", 10, 443), balancer("a", 10, 1), nil,
			"spec.ports[0].port: Invalid value: 443: port 443/TCP of the nodes belongs to Service b/web, which would lose it because this one is older: make a new Service"},
		"another port":            {p, balancer("a", 10, 444), balancer("a", 10, 1), nil, ""},
		"the same second":         {p, balancer("a", 20, 443), balancer("a", 20, 1), nil, "belongs to Service b/web"},
		"a younger one":           {p, balancer("a", 30, 443), balancer("a", 30, 1), nil, ""}, // it gets none, and is told
		"its own namespace":       {p, balancer("b", 10, 443), balancer("b", 10, 1), nil, ""},
		"had it":                  {p, balancer("a", 10, 443), balancer("a", 10, 443), nil, ""},
		"becomes a load balancer": {p, balancer("a", 10, 443), with(balancer("a", 10, 443), inside), nil, "belongs to Service b/web"},
		"of others":               {p, with(balancer("a", 10, 443), elsewhere), balancer("a", 10, 1), nil, ""},
		"of a pool":               {pooled, balancer("a", 10, 443), balancer("a", 10, 1), nil, ""},
		"an external address":     {pooled, balancer("a", 10, 443, "203.0.113.5"), balancer("a", 10, 443), nil, "spec.externalIPs[0]: Invalid value: \"203.0.113.5\": port 443/TCP of 203.0.113.5"},
		"an administrator":        {p, balancer("a", 10, 443), balancer("a", 10, 1), []string{user.SystemPrivilegedGroup}, ""},
		"a host": {p, ingress("a", 10, "ours", "own.example.com", "shop.example.COM"), ingress("a", 10, "ours", "own.example.com"), nil,
			`spec.rules[1].host: Invalid value: "shop.example.COM": host "shop.example.com" belongs to Ingress b/web`},
		"a host of another class": {p, ingress("a", 10, "theirs", "shop.example.com"), ingress("a", 10, "theirs"), nil, ""},
		"another class":           {p, ingress("a", 10, "ours", "shop.example.com"), ingress("a", 10, "theirs", "shop.example.com"), nil, "belongs to Ingress b/web"},
		"a younger Ingress":       {p, ingress("a", 30, "ours", "shop.example.com"), ingress("a", 30, "ours"), nil, ""},
		"the default backend": {p, with(ingress("a", 10, "ours"), func(i *networkingv1.Ingress) {
			i.Spec.DefaultBackend = &networkingv1.IngressBackend{}
		}), ingress("a", 10, "ours"), nil, "the default backend belongs to Ingress b/web"},
	} {
		expect(t, name, judge(t, c.p, c.now, c.old, c.groups...), c.words)
	}
}

func judge(t *testing.T, p Plugin, now, old runtime.Object, groups ...string) error {
	return p.Validate(t.Context(), admission.NewAttributesRecord(now, old, schema.GroupVersionKind{}, "a", "web", schema.GroupVersionResource{}, "",
		admission.Update, nil, false, &user.DefaultInfo{Name: "tina", Groups: groups}), nil)
}

func expect(t *testing.T, what string, err error, words string) {
	t.Helper()
	if (err != nil) != (words != "") || err != nil && (!strings.Contains(err.Error(), words) || !apierrors.IsInvalid(err)) {
		t.Errorf("%s: %v, want %q", what, err, words)
	}
}

// external is a Service inside, with external addresses.
func external(namespace string, second int64, addresses ...string) *corev1.Service {
	s := balancer(namespace, second, 443, addresses...)
	s.Spec.Type = corev1.ServiceTypeClusterIP
	return s
}

func named[T metav1.Object](o T, name string) T { o.SetName(name); return o }

func ofIPv6(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol} }

// inVain has no address, since the API has one of its ports.
func inVain(s *corev1.Service) {
	s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Port: 6443, Protocol: corev1.ProtocolTCP})
	s.Status.Conditions = []metav1.Condition{{Type: addressMissing, Status: metav1.ConditionTrue}}
}

func given(s *corev1.Service) {
	s.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.9"}}
}

// TestWhoHasAPort: who claims it in vain loses nothing, and one address is the same in each notation, and where it is a node's.
func TestWhoHasAPort(t *testing.T) {
	book := reserved.New()
	for i, address := range []string{"192.0.2.1", "192.0.2.2"} {
		name := strconv.Itoa(i)
		book.SetNode(name, &reserved.Machine{Name: "node " + name, Addresses: []netip.Addr{netip.MustParseAddr(address)}})
	}
	const loses = " belongs to Service b/web, which would lose it"
	for name, c := range map[string]struct {
		now, old *corev1.Service
		others   []any
		words    string
	}{
		"its own namespace has it":  {balancer("a", 10, 443), balancer("a", 10, 1), []any{named(balancer("a", 5, 443), "first"), balancer("b", 20, 443)}, ""},
		"an older one has it":       {balancer("a", 10, 443), balancer("a", 10, 1), []any{balancer("c", 5, 443), balancer("b", 20, 443)}, ""},
		"a younger one has it":      {balancer("a", 10, 443), balancer("a", 10, 1), []any{balancer("c", 30, 443), balancer("b", 20, 443)}, loses},
		"the next in its second":    {balancer("c", 20, 443), balancer("c", 20, 1), []any{balancer("b", 20, 443)}, ""},
		"one without an address":    {balancer("a", 10, 443), balancer("a", 10, 1), []any{with(balancer("b", 20, 443), inVain)}, ""},
		"gives up what it has not":  {balancer("a", 10, 443), with(balancer("a", 10, 443), inVain), []any{balancer("b", 20, 443)}, loses},
		"is changed in vain":        {with(balancer("a", 10, 443), inVain), with(balancer("a", 10, 443), inVain), []any{balancer("b", 20, 443)}, ""},
		"a node's address":          {balancer("a", 10, 443), balancer("a", 10, 1), []any{external("b", 20, "192.0.2.1")}, "443/TCP of 192.0.2.1" + loses},
		"a port of all nodes":       {external("a", 10, "192.0.2.1"), external("a", 10), []any{balancer("b", 20, 443)}, "443/TCP of 192.0.2.1" + loses},
		"no node's address":         {balancer("a", 10, 443), balancer("a", 10, 1), []any{external("b", 20, "192.0.2.3")}, ""},
		"another node's address":    {external("a", 10, "192.0.2.2"), external("a", 10), []any{external("b", 20, "192.0.2.1")}, ""},
		"had it at all nodes":       {external("a", 10, "192.0.2.1"), balancer("a", 10, 443), []any{external("b", 20, "192.0.2.1")}, ""},
		"had it at one":             {balancer("a", 10, 443), external("a", 10, "192.0.2.1"), []any{external("b", 20, "192.0.2.1")}, ""},
		"in other letters":          {with(external("a", 10, "FD00::1"), ofIPv6), external("a", 10), []any{with(external("b", 20, "fd00:0::1"), ofIPv6)}, "443/TCP of fd00::1" + loses},
		"of another family":         {with(external("a", 10, "fd00::1"), ofIPv6), external("a", 10), []any{external("b", 20, "fd00::1")}, ""},
		"the cache is a step ahead": {balancer("a", 10, 443), balancer("a", 10, 1), []any{balancer("a", 10, 443), balancer("b", 20, 443)}, loses},
	} {
		p := Plugin{Services: corelisters.NewServiceLister(indexer(t, c.others...)), Reserved: book, AtNodes: true}
		expect(t, name, judge(t, p, c.now, c.old), c.words)
	}
	pooled := Plugin{Services: corelisters.NewServiceLister(indexer(t, with(balancer("b", 20, 443), given))), Reserved: book}
	expect(t, "an address of a pool", judge(t, pooled, external("a", 10, "203.0.113.9"), external("a", 10)), "443/TCP of 203.0.113.9"+loses)
}

// TestWhoHasAHost: a younger Ingress of another namespace that names it in vain keeps nobody from it.
func TestWhoHasAHost(t *testing.T) {
	p := Plugin{
		Ingresses: networkinglisters.NewIngressLister(indexer(t,
			named(ingress("a", 5, "ours", "shop.example.com"), "first"), ingress("b", 20, "ours", "shop.example.com", "b.example.com"))),
		Classes: networkinglisters.NewIngressClassLister(indexer(t,
			&networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "ours"}, Spec: networkingv1.IngressClassSpec{Controller: ingressController}})),
		Reserved: reserved.New(),
	}
	expect(t, "its own", judge(t, p, ingress("a", 10, "ours", "shop.example.com"), ingress("a", 10, "ours")), "")
	expect(t, "b's", judge(t, p, ingress("a", 10, "ours", "b.example.com"), ingress("a", 10, "ours")), `host "b.example.com" belongs to Ingress b/web`)
}

// TestJudgesWithFullCaches: after a start of the server a change waits until they are filled, and is not judged without.
func TestJudgesWithFullCaches(t *testing.T) {
	for fills, check := range map[time.Duration]func(error) bool{time.Second: apierrors.IsInvalid, time.Hour: apierrors.IsServiceUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			services := indexer(t)
			var filled atomic.Bool
			time.AfterFunc(fills, func() {
				_ = services.Add(balancer("b", 20, 443))
				filled.Store(true)
			})
			p := Plugin{
				Services: corelisters.NewServiceLister(services), Synced: []cache.InformerSynced{filled.Load}, Reserved: reserved.New(), AtNodes: true,
			}
			if err := judge(t, p, balancer("a", 10, 443), balancer("a", 10, 1)); !check(err) {
				t.Errorf("caches that fill in %s: %v", fills, err)
			}
			if err := judge(t, p, balancer("a", 10, 1), balancer("a", 10, 1)); err != nil {
				t.Errorf("one that claims nothing new waits for them: %v", err)
			}
		})
	}
}
