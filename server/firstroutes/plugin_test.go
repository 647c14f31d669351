package firstroutes

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/internal/gatewayapi"
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

func custom(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetAPIVersion("gateway.networking.k8s.io/v1")
	return u
}

func gatewayOf(t *testing.T, namespace, made, listeners string) *unstructured.Unstructured {
	return custom(t, `{kind: Gateway, metadata: {name: g, namespace: `+namespace+`, creationTimestamp: "`+made+`"},
spec: {gatewayClassName: ours, listeners: [`+listeners+`]}}`)
}

func routeOf(t *testing.T, namespace, made, host string) *unstructured.Unstructured {
	return custom(t, `{kind: HTTPRoute, metadata: {name: r, namespace: `+namespace+`, creationTimestamp: "`+made+`"},
spec: {parentRefs: [{name: g}], hostnames: [`+host+`]}}`)
}

func ingressOf(namespace string, made time.Time, host string) *networkingv1.Ingress {
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "i", CreationTimestamp: metav1.NewTime(made)},
		Spec:       networkingv1.IngressSpec{IngressClassName: new("ours"), Rules: []networkingv1.IngressRule{{Host: host}}},
	}
}

const (
	old, young = "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"
	at80       = "{name: http, port: 80, protocol: HTTP}"
	at9000     = "{name: apart, port: 9000, protocol: HTTP}"
)

// tenants are two, of which b is younger and has b.com, port 9000 and, by its Ingress, shop.com, and a Service with port 5432.
func tenants(t *testing.T) Plugin {
	kept := map[string][]*unstructured.Unstructured{
		"gatewayclasses": {custom(t, "{kind: GatewayClass, metadata: {name: ours}, spec: {controllerName: "+gatewayapi.Controller+"}}")},
		"gateways":       {gatewayOf(t, "a", old, at80), gatewayOf(t, "b", young, at80+","+at9000)},
		"httproutes":     {routeOf(t, "a", old, "a.com"), routeOf(t, "b", young, "b.com")},
	}
	return Plugin{
		Objects: func(context.Context) (gatewayapi.Objects, error) { return gatewayapi.Read(kept), nil },
		Services: corelisters.NewServiceLister(indexer(t, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "b", Name: "db", CreationTimestamp: metav1.NewTime(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))},
			Spec:       corev1.ServiceSpec{ExternalIPs: []string{"192.0.2.1"}, Ports: []corev1.ServicePort{{Port: 5432, Protocol: corev1.ProtocolTCP}}},
		})),
		Ingresses: networkinglisters.NewIngressLister(indexer(t, ingressOf("b", time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), "shop.com"))),
		Classes: networkinglisters.NewIngressClassLister(indexer(t, &networkingv1.IngressClass{
			ObjectMeta: metav1.ObjectMeta{Name: "ours"}, Spec: networkingv1.IngressClassSpec{Controller: "setpoint.io/ingress"},
		})),
		Namespaces: corelisters.NewNamespaceLister(indexer(t)),
		Nodes: corelisters.NewNodeLister(indexer(t, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{reserved.IngressLabel: "80-443"}},
			Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}},
		})),
		Reserved: reserved.New(),
	}
}

// TestOlderObjectsTakeNothing: neither of Gateways and their routes, nor of Ingresses, nor of Services at the nodes.
func TestOlderObjectsTakeNothing(t *testing.T) {
	p := tenants(t)
	node, _ := p.Nodes.Get("n")
	p.Reserved.SetNode("n", reserved.OfNode(node))
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		now, old runtime.Object
		kind     string
		groups   []string
		words    string
	}{
		"a host": {routeOf(t, "a", old, "b.com"), routeOf(t, "a", old, "a.com"), "HTTPRoute", nil,
			`spec: Forbidden: host "b.com" belongs to HTTPRoute b/r, which would lose it because this one is older: make a new HTTPRoute`},
		"a host of nobody":    {routeOf(t, "a", old, "c.com"), routeOf(t, "a", old, "a.com"), "HTTPRoute", nil, ""},
		"an administrator":    {routeOf(t, "a", old, "b.com"), routeOf(t, "a", old, "a.com"), "HTTPRoute", []string{user.SystemPrivilegedGroup}, ""},
		"a younger route":     {routeOf(t, "a", "2028-01-01T00:00:00Z", "b.com"), routeOf(t, "a", "2028-01-01T00:00:00Z", "a.com"), "HTTPRoute", nil, ""},
		"its own namespace":   {routeOf(t, "b", old, "b.com"), routeOf(t, "b", old, "c.com"), "HTTPRoute", nil, ""},
		"had it":              {routeOf(t, "a", old, "b.com"), routeOf(t, "a", old, "b.com"), "HTTPRoute", nil, ""},
		"a host of Ingresses": {routeOf(t, "a", old, "shop.com"), routeOf(t, "a", old, "a.com"), "HTTPRoute", nil, `host "shop.com" belongs to Ingress b/i`},
		"a port": {gatewayOf(t, "a", old, at80+",{name: apart, port: 9000, protocol: TLS, tls: {mode: Passthrough}}"), gatewayOf(t, "a", old, at80), "Gateway", nil,
			"port 9000 of the nodes belongs to listener apart of Gateway b/g, which would lose it because this one is older: make a new Gateway"},
		"a port of both":   {gatewayOf(t, "a", old, at80+","+at9000), gatewayOf(t, "a", old, at80), "Gateway", nil, ""},
		"a Service's port": {gatewayOf(t, "a", old, at80+",{name: db, port: 5432, protocol: HTTP}"), gatewayOf(t, "a", old, at80), "Gateway", nil, "port 5432 of the nodes belongs to Service b/db"},
		"by an Ingress":    {ingressOf("a", made, "b.com"), ingressOf("a", made, "a.com"), "Ingress", nil, `host "b.com" belongs to HTTPRoute b/r`},
		"of another group": {with(routeOf(t, "a", old, "b.com")), with(routeOf(t, "a", old, "a.com")), "HTTPRoute", nil, ""},
	} {
		change := admission.NewAttributesRecord(c.now, c.old, schema.GroupVersionKind{Kind: c.kind}, "a", "x", schema.GroupVersionResource{}, "",
			admission.Update, nil, false, &user.DefaultInfo{Name: "tina", Groups: c.groups})
		err := p.Validate(t.Context(), change, nil)
		if (err != nil) != (c.words != "") || err != nil && (!strings.Contains(err.Error(), c.words) || !apierrors.IsInvalid(err)) {
			t.Errorf("%s: %v, want %q", name, err, c.words)
		}
	}
}

func with(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetAPIVersion("example.com/v1")
	return u
}

// TestWaitsForCaches: a server that has just started knows of nobody who could lose something.
func TestWaitsForCaches(t *testing.T) {
	p := tenants(t)
	p.Synced = []cache.InformerSynced{func() bool { return false }}
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	change := admission.NewAttributesRecord(routeOf(t, "a", old, "b.com"), routeOf(t, "a", old, "a.com"), schema.GroupVersionKind{Kind: "HTTPRoute"}, "a", "r",
		schema.GroupVersionResource{}, "", admission.Update, nil, false, &user.DefaultInfo{Name: "tina"})
	if err := p.Validate(impatient, change, nil); !apierrors.IsServiceUnavailable(err) {
		t.Error(err)
	}
}
