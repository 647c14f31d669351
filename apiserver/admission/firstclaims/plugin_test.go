package firstclaims

import (
	"strings"
	"testing"
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
		AtNodes: true,
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
		err := c.p.Validate(t.Context(), admission.NewAttributesRecord(c.now, c.old, schema.GroupVersionKind{}, "a", "web", schema.GroupVersionResource{}, "",
			admission.Update, nil, false, &user.DefaultInfo{Name: "tina", Groups: c.groups}), nil)
		if (err != nil) != (c.words != "") || err != nil && (!strings.Contains(err.Error(), c.words) || !apierrors.IsInvalid(err)) {
			t.Errorf("%s: %v, want %q", name, err, c.words)
		}
	}
}
