package gateway

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/hosts"
)

// shop is a claim of an Ingress, older or younger than the world's objects.
func shop(host hosts.Host, older bool) hosts.Claim {
	made := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	if older {
		made = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return hosts.Claim{Host: host, Kind: "Ingress", Object: &metav1.ObjectMeta{Namespace: "shop", Name: "web", CreationTimestamp: metav1.NewTime(made)}}
}

const routeOfTen = `
kind: Gateway
metadata: {name: g, namespace: ten}
spec:
  gatewayClassName: ours
  listeners: [{name: http, port: 80, protocol: HTTP}, {name: apart, port: 8080, protocol: HTTP}]
---
kind: HTTPRoute
metadata: {name: r, namespace: ten}
spec:
  parentRefs: [{name: g, sectionName: http}]
  hostnames: [shop.com, ten.com]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
kind: HTTPRoute
metadata: {name: one, namespace: ten}
spec:
  parentRefs: [{name: g}]
  hostnames: [shop.com]
  rules: [{backendRefs: [{name: web, port: 80}]}]
`

func TestAHostOfAnIngressIsTaken(t *testing.T) {
	in := world(t, routeOfTen)
	in.Shared[80] = false
	in.Hosts = []hosts.Claim{shop("shop.com", true)}
	built := Build(in)
	for asked, want := range map[string]string{"GET shop.com/": "404", "GET ten.com/": "web/"} {
		if got := goesTo(built.Ports[80], asked); got != want {
			t.Errorf("%s: %s, want %s", asked, got, want)
		}
	}
	if got := goesTo(built.Ports[8080], "GET shop.com/"); got != "web/" {
		t.Errorf("at a port without Ingresses: %s", got)
	}
	if len(built.Taken) != 2 || built.Taken[0].Host != "shop.com" {
		t.Errorf("%v", built.Taken)
	}
	in.Hosts = nil
	if got := goesTo(Build(in).Ports[80], "GET shop.com/"); got != "web/" {
		t.Errorf("the Ingress has gone: %s", got)
	}
	in.Hosts = []hosts.Claim{shop("shop.com", false)}
	built = Build(in)
	if by, taken := built.Hosts.Taken(in.Hosts[0]); !taken || by.String() != "HTTPRoute ten/r" || goesTo(built.Ports[80], "GET shop.com/") != "web/" {
		t.Errorf("an Ingress that came later: %v %v", by, taken)
	}
}

// TestARouteWithoutAFreeHostSaysSo, and one that has some is accepted.
func TestARouteWithoutAFreeHostSaysSo(t *testing.T) {
	in := world(t, routeOfTen)
	in.Shared[80], in.Shared[8080] = false, false
	in.Hosts = []hosts.Claim{shop("shop.com", true)}
	want := map[string]string{"r": "Accepted", "one": hosts.Reason}
	for _, r := range Build(in).Routes {
		c := meta.FindStatusCondition(r.Parents[0].Conditions, string(v1.RouteConditionAccepted))
		if c.Reason != want[r.Route.GetName()] {
			t.Errorf("%s: %s %s", r.Route.GetName(), c.Reason, c.Message)
		}
	}
}

// TestGatewaysOfTwoNamespaces: at one port of the nodes, the first has the host; routes of one Gateway are its own affair.
func TestGatewaysOfTwoNamespaces(t *testing.T) {
	gateway := func(namespace string) string {
		return `
kind: Gateway
metadata: {name: g, namespace: ` + namespace + `}
spec:
  gatewayClassName: ours
  listeners: [{name: http, port: 8080, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}]
---
`
	}
	route := func(namespace, of, path string) string {
		return `
kind: HTTPRoute
metadata: {name: r, namespace: ` + namespace + `}
spec:
  parentRefs: [{name: g, namespace: ` + of + `}]
  hostnames: [shop.com]
  rules: [{matches: [{path: {value: ` + path + `}}], backendRefs: [{name: ` + namespace + `, port: 80}]}]
`
	}
	built := Build(world(t, gateway("a")+gateway("b")+route("shop", "a", "/")+"---\n"+route("ten", "b", "/login")+"---\n"+route("guest", "a", "/guest")))
	for asked, want := range map[string]string{"GET shop.com/login": "shop/login", "GET shop.com/guest": "guest/guest"} {
		if got := goesTo(built.Ports[8080], asked); got != want {
			t.Errorf("%s: %s, want %s", asked, got, want)
		}
	}
}

// TestAListenersHostnameIsTaken: it would show its certificate to those who ask for the Ingress.
func TestAListenersHostnameIsTaken(t *testing.T) {
	in := world(t, `
kind: Gateway
metadata: {name: g, namespace: ten}
spec:
  gatewayClassName: ours
  listeners:
  - {name: taken, port: 8443, protocol: HTTPS, hostname: shop.com, tls: {certificateRefs: [{name: a}]}}
  - {name: free, port: 8443, protocol: HTTPS, hostname: ten.com, tls: {certificateRefs: [{name: b}]}}
`)
	in.Hosts = []hosts.Claim{shop("shop.com", true)}
	built := Build(in)
	if named := built.Ports[8443].Named("shop.com"); named != "" {
		t.Errorf("listener %s", named)
	}
	if named := built.Ports[8443].Named("ten.com"); named != "ten.com" {
		t.Errorf("listener %q", named)
	}
	c := meta.FindStatusCondition(built.Gateways[0].Listeners[0].Conditions, string(v1.ListenerConditionConflicted))
	if c.Status != metav1.ConditionTrue || c.Reason != string(v1.ListenerReasonHostnameConflict) || c.Message == "" {
		t.Errorf("%v", c)
	}
}
