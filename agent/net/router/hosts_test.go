package router

import (
	"fmt"
	"net/http"
	"testing"
)

// TestAnotherNamespacesRoutesTakeNoHost: neither a route for all hosts nor one for the host takes the requests of an Ingress.
func TestAnotherNamespacesRoutesTakeNoHost(t *testing.T) {
	s := newGatewaySite(t)
	s.add(ingress("web"))
	s.pod("10.0.0.1", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "Ingress") })
	s.serves("web", 1)
	s.declare("gateways", `
kind: Gateway
metadata: {name: g, namespace: other}
spec: {gatewayClassName: setpoint, listeners: [{name: http, port: PLAIN, protocol: HTTP}]}`)
	for name, hostnames := range map[string]string{"all": "[]", "one": "[web, free.com]"} {
		s.declare("httproutes", `
kind: HTTPRoute
metadata: {name: `+name+`, namespace: other}
spec:
  parentRefs: [{name: g}]
  hostnames: `+hostnames+`
  rules: [{filters: [{type: RequestRedirect, requestRedirect: {statusCode: 302, hostname: `+name+`.com}}]}]`)
	}
	s.routed("a.com", "/")
	s.routed("free.com", "/")
	for host, want := range map[string]string{"web": "200 ", "free.com": "302 http://one.com", "a.com": "302 http://all.com"} {
		answer, _ := s.ask("GET", host, "/", "")
		if got := fmt.Sprint(answer.StatusCode, " ", answer.Header.Get("Location")); got != want && got != want+s.plain[len("127.0.0.1"):]+"/" {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}
