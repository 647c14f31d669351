package gateway

import (
	"crypto/tls"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/hosts"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// gateway has one listener for HTTP at port 80.
const gateway = `
kind: Gateway
metadata: {name: g}
spec: {gatewayClassName: ours, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
`

// goesTo is the Service that gets a request "GET host/path header=value", or the code of the answer.
func goesTo(p *Port, asked string) string {
	words := strings.Fields(asked)
	host, path, _ := strings.Cut(words[1], "/")
	req := httptest.NewRequest(words[0], "http://"+host+"/"+path, nil)
	for _, pair := range words[2:] {
		name, value, _ := strings.Cut(pair, "=")
		req.Header.Add(name, value)
	}
	switch found := p.Find(host, req); {
	case found == nil:
		return "404"
	case found.Code != 0:
		return fmt.Sprint(found.Code)
	case found.Change != nil && found.Change.Redirect != nil:
		return fmt.Sprint(found.Change.Redirect.Code, " ", found.Change.Redirect.Location(host, req.URL, p.Secure, 80))
	default:
		return found.Backend.Service + found.Target(req.URL.Path)
	}
}

func TestRules(t *testing.T) {
	for name, test := range map[string]struct {
		objects string
		// wants are "METHOD host/path header=value > service/path"
		wants []string
	}{
		"paths": {gateway + `
kind: HTTPRoute
spec:
  parentRefs: [{name: g}]
  rules:
  - {backendRefs: [{name: root, port: 80}]}
  - {matches: [{path: {type: Exact, value: /a}}], backendRefs: [{name: exact, port: 80}]}
  - {matches: [{path: {type: PathPrefix, value: /a/b/}}, {path: {value: /c}}], backendRefs: [{name: prefix, port: 80}]}
  - {matches: [{path: {type: RegularExpression, value: "/r[0-9]+$"}}], backendRefs: [{name: expression, port: 80}]}
  - {matches: [{path: {type: RegularExpression, value: "/one|/two"}}], backendRefs: [{name: either, port: 80}]}
`, []string{
			"GET x/two > either/two", "GET x/far/two > root/far/two",
			"GET x/ > root/", "GET x/a > exact/a", "GET x/a/ > root/a/", "GET x/a/b > prefix/a/b", "GET x/a/bc > root/a/bc",
			"GET x/c/d > prefix/c/d", "GET x/r12 > expression/r12", "GET x/r12x > root/r12x",
		}},
		"precedence": {gateway + `
kind: HTTPRoute
metadata: {name: old}
spec:
  parentRefs: [{name: g}]
  rules:
  - {matches: [{headers: [{name: version, value: one}]}], backendRefs: [{name: header, port: 80}]}
  - {matches: [{method: POST}], backendRefs: [{name: method, port: 80}]}
  - {matches: [{headers: [{name: version, value: one}, {name: color, value: red}]}], backendRefs: [{name: two, port: 80}]}
  - {matches: [{queryParams: [{name: q, value: "1"}]}], backendRefs: [{name: query, port: 80}]}
---
kind: HTTPRoute
metadata: {name: young}
spec:
  parentRefs: [{name: g}]
  rules:
  - {matches: [{headers: [{name: version, value: one}]}], backendRefs: [{name: young, port: 80}]}
  - {matches: [{path: {value: /longer}}], backendRefs: [{name: longer, port: 80}]}
`, []string{
			"GET x/ Version=one > header/", "POST x/ version=one color=red > method/", "GET x/ version=one color=red > two/",
			"GET x/?q=1 > query/", "GET x/?q=1 version=one > header/", "GET x/longer version=one > longer/longer", "GET x/ > 404",
		}},
		"hostnames of routes": {gateway + `
kind: HTTPRoute
metadata: {name: any}
spec: {parentRefs: [{name: g}], rules: [{matches: [{path: {value: /long/path}}], backendRefs: [{name: any, port: 80}]}]}
---
kind: HTTPRoute
metadata: {name: wild}
spec: {parentRefs: [{name: g}], hostnames: ["*.a.com", "*.b.a.com"], rules: [{backendRefs: [{name: wild, port: 80}]}]}
---
kind: HTTPRoute
metadata: {name: exact}
spec: {parentRefs: [{name: g}], hostnames: ["X.A.com"], rules: [{matches: [{path: {value: /x}}], backendRefs: [{name: exact, port: 80}]}]}
`, []string{
			"GET x.a.com/x > exact/x", "GET X.a.com./x > exact/x", "GET x.a.com/y > wild/y", "GET z.y.a.com/y > wild/y", "GET a.com/y > 404",
			"GET a.com/long/path > any/long/path",
		}},
		"hostnames of listeners": {`
kind: Gateway
metadata: {name: g}
spec:
  gatewayClassName: ours
  listeners:
  - {name: any, port: 80, protocol: HTTP}
  - {name: wild, port: 80, protocol: HTTP, hostname: "*.a.com"}
  - {name: exact, port: 80, protocol: HTTP, hostname: x.a.com}
---
kind: HTTPRoute
metadata: {name: any}
spec: {parentRefs: [{name: g, sectionName: any}], rules: [{backendRefs: [{name: any, port: 80}]}]}
---
kind: HTTPRoute
metadata: {name: wild}
spec: {parentRefs: [{name: g, sectionName: wild}], hostnames: ["y.a.com", "c.com"], rules: [{backendRefs: [{name: wild, port: 80}]}]}
---
kind: HTTPRoute
metadata: {name: exact}
spec: {parentRefs: [{name: g, sectionName: exact}], hostnames: ["*.a.com"], rules: [{backendRefs: [{name: exact, port: 80}]}]}
`, []string{
			"GET b.com/ > any/", "GET c.com/ > any/", "GET y.a.com/ > wild/", "GET z.a.com/ > 404", "GET x.a.com/ > exact/",
		}},
		"two Gateways at one address": {gateway + `
kind: Gateway
metadata: {name: other}
spec: {gatewayClassName: ours, listeners: [{name: http, port: 80, protocol: HTTP, hostname: x.com}]}
---
kind: HTTPRoute
metadata: {name: first}
spec: {parentRefs: [{name: g}], rules: [{backendRefs: [{name: first, port: 80}]}]}
---
kind: HTTPRoute
metadata: {name: second}
spec: {parentRefs: [{name: other}], rules: [{matches: [{path: {value: /x}}], backendRefs: [{name: second, port: 80}]}]}
`, []string{"GET x.com/x > second/x", "GET x.com/ > first/", "GET y.com/x > first/x"}},
		"filters": {gateway + `
kind: HTTPRoute
spec:
  parentRefs: [{name: g}]
  rules:
  - matches: [{path: {value: /rewrite}}]
    filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplacePrefixMatch, replacePrefixMatch: /new/}}}]
    backendRefs: [{name: a, port: 80}]
  - matches: [{path: {value: /whole}}]
    filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: /one}}}]
    backendRefs: [{name: a, port: 80}]
  - matches: [{path: {value: /to}}, {path: {value: /also/to}}]
    filters: [{type: RequestRedirect, requestRedirect: {hostname: b.com, path: {type: ReplacePrefixMatch, replacePrefixMatch: /x}}}]
  - {matches: [{path: {value: /port}}], filters: [{type: RequestRedirect, requestRedirect: {port: 8080, statusCode: 307}}]}
  - {matches: [{path: {value: /tls}}], filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}
  - {matches: [{path: {value: /extension}}], filters: [{type: ExtensionRef, extensionRef: {group: x, kind: y, name: z}}], backendRefs: [{name: a, port: 80}]}
  - {matches: [{path: {value: /retry}}], retry: {attempts: 2}, backendRefs: [{name: a, port: 80}]}
  - {matches: [{path: {value: /nothing}}]}
  - {matches: [{path: {value: /missing}}], backendRefs: [{name: missing, port: 80}]}
  - {matches: [{path: {value: /zero}}], backendRefs: [{name: a, port: 80, weight: 0}, {name: b, port: 80, weight: 1}]}
`, []string{
			"GET x/rewrite/y?q > a/new/y", "GET x/rewrite > a/new/", "GET x/whole/y > a/one", "GET x/to/y?q > 302 http://b.com/x/y?q",
			"GET x/also/to > 302 http://b.com/x", "GET x/port > 307 http://x:8080/port", "GET x/tls > 302 https://x/tls", "GET x/extension > 500",
			"GET x/retry > 500", "GET x/nothing > 500", "GET x/missing > 500", "GET x/zero > b/zero",
		}},
		"methods of gRPC": {gateway + `
kind: GRPCRoute
spec:
  parentRefs: [{name: g}]
  rules:
  - {matches: [{method: {service: s, method: M}}], backendRefs: [{name: both, port: 80}]}
  - {matches: [{method: {service: s}}], backendRefs: [{name: service, port: 80}]}
  - {matches: [{method: {method: Other}}], backendRefs: [{name: method, port: 80}]}
  - {matches: [{method: {type: RegularExpression, service: "t.*"}}], backendRefs: [{name: expression, port: 80}]}
  - {matches: [{headers: [{name: a, type: RegularExpression, value: "b+"}]}], backendRefs: [{name: header, port: 80}]}
`, []string{
			"POST x/s/M > both/s/M", "POST x/s/O > service/s/O", "POST x/u/Other > method/u/Other", "POST x/two/O > expression/two/O", "POST x/u/O > 404",
			"POST x/u/O a=bb > header/u/O", "POST x/u/O a=bc > 404",
		}},
	} {
		built := Build(world(t, test.objects))
		for _, want := range test.wants {
			asked, goes, _ := strings.Cut(want, " > ")
			if got := goesTo(built.Ports[80], asked); got != goes {
				t.Errorf("%s: %s goes to %s, want %s", name, asked, got, goes)
			}
		}
	}
}

// conditions are "Type=reason" where something is as it should be, and "Type!reason" where not.
func conditions(all []metav1.Condition) string {
	var words []string
	for _, c := range all {
		sign := "!"
		if (c.Status == metav1.ConditionTrue) != (c.Type == string(v1.ListenerConditionConflicted)) {
			sign = "="
		}
		words = append(words, c.Type+sign+c.Reason)
	}
	slices.Sort(words)
	return strings.Join(words, " ")
}

func TestParents(t *testing.T) {
	const listeners = `
kind: Gateway
metadata: {name: g}
spec:
  gatewayClassName: ours
  listeners:
  - {name: same, port: 80, protocol: HTTP, hostname: a.com}
  - {name: all, port: 81, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: chosen, port: 82, protocol: HTTP, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {is: chosen}}}}}
  - {name: grpc, port: 83, protocol: HTTP, allowedRoutes: {kinds: [{kind: GRPCRoute}]}}
---
kind: Gateway
metadata: {name: theirs}
spec: {gatewayClassName: theirs, listeners: [{name: http, port: 80, protocol: HTTP}]}
---
kind: ReferenceGrant
metadata: {namespace: granting}
spec: {from: [{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: home}], to: [{kind: Service}]}
---
`
	for name, test := range map[string]struct{ route, want string }{
		"by name":            {"{parentRefs: [{name: g, sectionName: same}]}", "Accepted=Accepted ResolvedRefs=ResolvedRefs"},
		"by port":            {"{parentRefs: [{name: g, port: 81}]}", "Accepted=Accepted ResolvedRefs=ResolvedRefs"},
		"no such name":       {"{parentRefs: [{name: g, sectionName: x}]}", "Accepted!NoMatchingParent ResolvedRefs=ResolvedRefs"},
		"no such port":       {"{parentRefs: [{name: g, sectionName: same, port: 81}]}", "Accepted!NoMatchingParent ResolvedRefs=ResolvedRefs"},
		"not this namespace": {"{parentRefs: [{name: g, sectionName: chosen}]}", "Accepted!NotAllowedByListeners ResolvedRefs=ResolvedRefs"},
		"not this kind":      {"{parentRefs: [{name: g, sectionName: grpc}]}", "Accepted!NotAllowedByListeners ResolvedRefs=ResolvedRefs"},
		"no name in common": {
			"{parentRefs: [{name: g, sectionName: same}], hostnames: [b.com]}", "Accepted!NoMatchingListenerHostname ResolvedRefs=ResolvedRefs",
		},
		"of others":   {"{parentRefs: [{name: theirs}, {name: g, group: x}, {name: g, kind: Service}, {name: none}]}", ""},
		"two parents": {"{parentRefs: [{name: g, port: 80}, {name: g, port: 8}]}", "Accepted=Accepted ResolvedRefs=ResolvedRefs; Accepted!NoMatchingParent ResolvedRefs=ResolvedRefs"},
		"no backend": {
			"{parentRefs: [{name: g}], rules: [{backendRefs: [{name: missing, port: 80}]}]}", "Accepted=Accepted ResolvedRefs!BackendNotFound",
		},
		"no port":       {"{parentRefs: [{name: g}], rules: [{backendRefs: [{name: a, port: 81}]}]}", "Accepted=Accepted ResolvedRefs!BackendNotFound"},
		"no Service":    {"{parentRefs: [{name: g}], rules: [{backendRefs: [{name: a, kind: Pod, port: 80}]}]}", "Accepted=Accepted ResolvedRefs!InvalidKind"},
		"not permitted": {"{parentRefs: [{name: g}], rules: [{backendRefs: [{name: a, namespace: far, port: 80}]}]}", "Accepted=Accepted ResolvedRefs!RefNotPermitted"},
		"permitted":     {"{parentRefs: [{name: g}], rules: [{backendRefs: [{name: a, namespace: granting, port: 80}]}]}", "Accepted=Accepted ResolvedRefs=ResolvedRefs"},
		"an expression": {
			"{parentRefs: [{name: g}], rules: [{matches: [{path: {type: RegularExpression, value: /(}}]}]}", "Accepted!UnsupportedValue ResolvedRefs=ResolvedRefs",
		},
		"two filters": {
			"{parentRefs: [{name: g}], rules: [{filters: [{type: RequestRedirect, requestRedirect: {port: 1}}, {type: URLRewrite, urlRewrite: {hostname: x}}]}]}",
			"Accepted!IncompatibleFilters ResolvedRefs=ResolvedRefs",
		},
		"another namespace": {"{parentRefs: [{name: g, namespace: home}]}\nmetadata: {namespace: other}", "Accepted=Accepted ResolvedRefs=ResolvedRefs"},
	} {
		built := Build(world(t, listeners+"kind: HTTPRoute\nspec: "+test.route+"\n"))
		var got []string
		for _, p := range built.Routes[0].Parents {
			got = append(got, conditions(p.Conditions))
		}
		if text := strings.Join(got, "; "); text != test.want {
			t.Errorf("%s: %s, want %s", name, text, test.want)
		}
	}
}

func TestListeners(t *testing.T) {
	const good = "Accepted=Accepted Conflicted=NoConflicts Programmed=Programmed ResolvedRefs=ResolvedRefs"
	for name, test := range map[string]struct {
		spec, gateway string
		listeners     []string // of the last one first
		kinds         int
	}{
		"HTTP":  {"listeners: [{name: a, port: 80, protocol: HTTP}]", "Accepted=Accepted", []string{good}, 2},
		"HTTPS": {"listeners: [{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: s}]}}]", "Accepted=Accepted", []string{good}, 2},
		"UDP": {
			"listeners: [{name: a, port: 80, protocol: UDP}]", "Accepted!ListenersNotValid",
			[]string{"Accepted!UnsupportedProtocol Conflicted=NoConflicts Programmed!Invalid ResolvedRefs=ResolvedRefs"}, 0,
		},
		"one of two": {
			"listeners: [{name: a, port: 80, protocol: HTTP}, {name: b, port: 81, protocol: UDP}]", "Accepted=ListenersNotValid",
			[]string{"Accepted!UnsupportedProtocol Conflicted=NoConflicts Programmed!Invalid ResolvedRefs=ResolvedRefs", good}, 0,
		},
		"kinds": {
			"listeners: [{name: a, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: HTTPRoute}, {kind: TCPRoute}]}}]", "Accepted=Accepted",
			[]string{"Accepted=Accepted Conflicted=NoConflicts Programmed!Invalid ResolvedRefs!InvalidRouteKinds"}, 1,
		},
		"no certificate": {
			"listeners: [{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: broken}]}}]", "Accepted=Accepted",
			[]string{"Accepted=Accepted Conflicted=NoConflicts Programmed!Invalid ResolvedRefs!InvalidCertificateRef"}, 2,
		},
		"a ConfigMap": {
			"listeners: [{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: s, kind: ConfigMap}]}}]", "Accepted=Accepted",
			[]string{"Accepted=Accepted Conflicted=NoConflicts Programmed!Invalid ResolvedRefs!InvalidCertificateRef"}, 2,
		},
		"another namespace's": {
			"listeners: [{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: s, namespace: far}]}}]", "Accepted=Accepted",
			[]string{"Accepted=Accepted Conflicted=NoConflicts Programmed!Invalid ResolvedRefs!RefNotPermitted"}, 2,
		},
		"passed through": {
			"listeners: [{name: a, port: 443, protocol: HTTPS, tls: {mode: Passthrough}}]", "Accepted!ListenersNotValid",
			[]string{"Accepted!UnsupportedValue Conflicted=NoConflicts Programmed!Invalid ResolvedRefs=ResolvedRefs"}, 2,
		},
		"two protocols": {
			"listeners: [{name: a, port: 80, protocol: HTTP}, {name: b, port: 80, protocol: HTTPS, tls: {certificateRefs: [{name: s}]}}]",
			"Accepted=ListenersNotValid", []string{"Accepted!ProtocolConflict Conflicted!ProtocolConflict Programmed!ProtocolConflict ResolvedRefs=ResolvedRefs", good}, 2,
		},
		"the port of Ingresses": {
			"listeners: [{name: a, port: 8443, protocol: HTTP}]", "Accepted!ListenersNotValid",
			[]string{"Accepted!PortUnavailable Conflicted=NoConflicts Programmed!Invalid ResolvedRefs=ResolvedRefs"}, 2,
		},
		"the agent's port": {
			"listeners: [{name: a, port: 10250, protocol: HTTP}]", "Accepted!ListenersNotValid",
			[]string{"Accepted!PortUnavailable Conflicted=NoConflicts Programmed!Invalid ResolvedRefs=ResolvedRefs"}, 2,
		},
		"clients' certificates": {
			"tls: {frontend: {default: {validation: {caCertificateRefs: [{group: '', kind: ConfigMap, name: ca}]}}}}\n  " +
				"listeners: [{name: a, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: s}]}}]", "Accepted!ListenersNotValid",
			[]string{"Accepted!UnsupportedValue Conflicted=NoConflicts Programmed!Invalid ResolvedRefs=ResolvedRefs"}, 2,
		},
		"its own address": {"addresses: [{value: 192.0.2.1}]\n  listeners: [{name: a, port: 80, protocol: HTTP}]", "Accepted!UnsupportedAddress", []string{good}, 2},
		"any address":     {"addresses: [{type: IPAddress}]\n  listeners: [{name: a, port: 80, protocol: HTTP}]", "Accepted=Accepted", []string{good}, 2},
	} {
		built := Build(world(t, "kind: Gateway\nspec:\n  gatewayClassName: ours\n  "+test.spec+"\n"))
		state := built.Gateways[0]
		var got []string
		for _, l := range state.Listeners {
			got = append([]string{conditions(l.Conditions)}, got...)
		}
		if text := conditions(state.Conditions); text != test.gateway || !slices.Equal(got, test.listeners) {
			t.Errorf("%s: %s, %q", name, text, got)
		}
		if last := state.Listeners[len(state.Listeners)-1]; len(last.SupportedKinds) != test.kinds {
			t.Errorf("%s: %d kinds", name, len(last.SupportedKinds))
		}
		if open := len(built.Ports) > 0; open != (meta.IsStatusConditionTrue(state.Conditions, "Accepted") && strings.Contains(strings.Join(got, ""), "Programmed=") || name == "kinds") {
			t.Errorf("%s: ports %v", name, built.Ports)
		}
	}
}

// TestOlderServicesKeepTheirPorts: a port of nodes that a load balancer or an external address has is not a younger Gateway's, of whatever
// namespace; that of a pool, of UDP, of Ingresses or of a younger Service is.
func TestOlderServicesKeepTheirPorts(t *testing.T) {
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		port     int32
		protocol corev1.Protocol
		at       string
		made     time.Time
		taken    bool
		external string
	}{
		"older":           {8080, corev1.ProtocolTCP, "192.0.2.1", first, true, ""},
		"younger":         {8080, corev1.ProtocolTCP, "192.0.2.1", first.Add(time.Hour), false, ""},
		"of a pool":       {8080, corev1.ProtocolTCP, "192.0.2.77", first, false, ""},
		"waits":           {8080, corev1.ProtocolTCP, "", first, false, ""},
		"of UDP":          {8080, corev1.ProtocolUDP, "192.0.2.1", first, false, ""},
		"another port":    {8081, corev1.ProtocolTCP, "192.0.2.1", first, false, ""},
		"of Ingresses":    {8443, corev1.ProtocolTCP, "192.0.2.1", first, false, ""},
		"of both of them": {8080, corev1.ProtocolTCP, "2001:db8::1", first, true, ""},
		"external":        {8080, corev1.ProtocolTCP, "", first, true, "192.0.2.1"},
		"younger, too":    {8080, corev1.ProtocolTCP, "", first.Add(time.Hour), false, "192.0.2.1"},
		"of no machine":   {8080, corev1.ProtocolTCP, "", first, false, "192.0.2.77"},
	} {
		in := world(t, "kind: Gateway\nspec:\n  gatewayClassName: ours\n  listeners: [{name: a, port: 8080, protocol: HTTP}, {name: b, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: s}]}}]\n")
		in.Shared[8443] = true
		in.Reserved.SetNode("a", &reserved.Machine{Name: "a", Addresses: []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")}})
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", CreationTimestamp: metav1.NewTime(c.made)}}
		service.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: c.port, Protocol: c.protocol}}}
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: c.at}}
		if c.external != "" {
			service.Spec.Type, service.Spec.ExternalIPs = corev1.ServiceTypeClusterIP, []string{c.external}
		}
		in.Services = func() []*corev1.Service { return []*corev1.Service{service} }
		built := Build(in)
		if taken := built.Ports[8080] == nil; taken != c.taken || built.Ports[8443] == nil {
			t.Errorf("%s: taken %v, ports %v", name, taken, slices.Collect(maps.Keys(built.Ports)))
		}
		said := built.Gateways[0].Listeners[0].Conditions[0]
		if want := "port 8080 of nodes belongs to Service shop/web, which is older"; c.taken && (said.Message != want || said.Reason != "PortUnavailable") {
			t.Errorf("%s: %s: %s", name, said.Reason, said.Message)
		}
	}
}

// TestWeights: each backend gets its part, and one that is wrong its part of errors.
func TestWeights(t *testing.T) {
	built := Build(world(t, gateway+`
kind: HTTPRoute
spec: {parentRefs: [{name: g}], rules: [{backendRefs: [{name: a, port: 80, weight: 7}, {name: b, port: 80, weight: 2}, {name: missing, port: 80}]}]}
`))
	count := map[string]int{}
	for range 10000 {
		count[goesTo(built.Ports[80], "GET x/")]++
	}
	for goes, want := range map[string]int{"a/": 7000, "b/": 2000, "500": 1000} {
		if got := count[goes]; got < want-400 || got > want+400 {
			t.Errorf("%s: %d of 10000, want about %d", goes, got, want)
		}
	}
}

func TestCertificatesOfListeners(t *testing.T) {
	built := Build(world(t, `
kind: Gateway
spec:
  gatewayClassName: ours
  listeners:
  - {name: any, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: any}]}}
  - {name: wild, port: 443, protocol: HTTPS, hostname: "*.a.com", tls: {certificateRefs: [{name: wild}]}}
`))
	port := built.Ports[443]
	for name, want := range map[string]string{"b.com": "any", "x.A.com": "wild", "y.x.a.com": "wild", "a.com": "any", "": "any"} {
		if got := port.Certificate(&tls.ClientHelloInfo{ServerName: name}); got == nil || string(got.Certificate[0]) != want {
			t.Errorf("%s: %v, want %s", name, got, want)
		}
		if named := port.Named(name); named != map[string]hosts.Host{"wild": "*.a.com"}[want] {
			t.Errorf("%s: %q", name, named)
		}
	}
	if port.Listener("x.a.com") == port.Listener("b.com") || port.Listener("x.a.com") != port.Listener("y.a.com") {
		t.Error("listeners are not told apart")
	}
}

// TestAGatewayWithAnAddressOfItsOwn is served at its Service's node ports and shares them with nobody.
func TestAGatewayWithAnAddressOfItsOwn(t *testing.T) {
	in := world(t, gateway+`
kind: Gateway
metadata: {name: own, uid: u}
spec: {gatewayClassName: ours, listeners: [{name: http, port: 80, protocol: HTTP}, {name: new, port: 81, protocol: HTTP}]}
---
kind: HTTPRoute
metadata: {name: first}
spec: {parentRefs: [{name: g}], rules: [{backendRefs: [{name: first, port: 80}]}]}
---
kind: HTTPRoute
metadata: {name: second}
spec: {parentRefs: [{name: own}], rules: [{backendRefs: [{name: second, port: 80}]}]}
`)
	others := in.Service
	in.Service = func(namespace, name string) *corev1.Service {
		service := others(namespace, name)
		if name == "gateway-own" {
			service.OwnerReferences = []metav1.OwnerReference{{UID: "u", Controller: new(true)}}
			service.Spec.Ports = []corev1.ServicePort{{Port: 80, NodePort: 30080}}
		}
		return service
	}
	built := Build(in)
	if len(built.Ports) != 2 || built.Ports[30080].Number != 80 {
		t.Fatalf("%+v", built.Ports)
	}
	for at, want := range map[int]string{80: "first/", 30080: "second/"} {
		if got := goesTo(built.Ports[at], "GET x/"); got != want {
			t.Errorf("port %d goes to %s, want %s", at, got, want)
		}
	}
}

func TestIntersect(t *testing.T) {
	for _, test := range []struct{ listener, route, want string }{
		{"", "", "[]"}, {"a.com", "", "[a.com]"}, {"", "a.com", "[a.com]"}, {"a.com", "a.com b.com", "[a.com]"}, {"*.com", "a.com x.y.com b.org", "[a.com x.y.com]"},
		{"a.b.com", "*.com *.b.com", "[a.b.com a.b.com]"}, {"*.a.com", "*.com", "[*.a.com]"}, {"*.com", "*.a.com", "[*.a.com]"}, {"*.a.com", "a.com", "[]"}, {"a.com", "*.a.com", "[]"},
	} {
		var names []v1.Hostname
		for _, name := range strings.Fields(test.route) {
			names = append(names, v1.Hostname(name))
		}
		if got := fmt.Sprint(intersect(test.listener, names)); got != test.want && (test.listener != "" || test.route != "") {
			t.Errorf("%q and %q: %s, want %s", test.listener, test.route, got, test.want)
		}
	}
}

func BenchmarkFind(b *testing.B) {
	for _, hosts := range []int{5, 5000} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			var t testing.T
			text := gateway
			for n := range hosts {
				text += fmt.Sprintf("kind: HTTPRoute\nmetadata: {name: r%d}\nspec: {parentRefs: [{name: g}], hostnames: [h%d.com], rules: [{backendRefs: [{name: a, port: 80}]}]}\n---\n", n, n)
			}
			port := Build(world(&t, strings.TrimSuffix(text, "---\n"))).Ports[80]
			req := httptest.NewRequest(http.MethodGet, "http://h3.com/api/v1/things/7", nil)
			for b.Loop() {
				if port.Find("h3.com", req) == nil {
					b.Fatal("nobody")
				}
			}
		})
	}
}
