package gateway

import (
	"slices"
	"strings"
	"testing"

	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/hosts"
)

// twoTenants: ten's objects are older than guest's, which have what they name.
const twoTenants = `
kind: Gateway
metadata: {name: g, namespace: ten}
spec:
  gatewayClassName: ours
  listeners: [{name: http, port: 80, protocol: HTTP}, {name: apart, port: 8080, protocol: HTTP}]
---
kind: HTTPRoute
metadata: {name: r, namespace: ten}
spec:
  parentRefs: [{name: g}]
  hostnames: [ten.com]
  rules: [{backendRefs: [{name: web, port: 80}]}]
---
kind: Gateway
metadata: {name: g, namespace: guest}
spec:
  gatewayClassName: ours
  listeners: [{name: http, port: 80, protocol: HTTP}, {name: tls, port: 9443, protocol: HTTPS, hostname: guest.com, tls: {certificateRefs: [{name: c}]}}]
---
kind: HTTPRoute
metadata: {name: r, namespace: guest}
spec:
  parentRefs: [{name: g}]
  hostnames: [guest.com]
  rules: [{backendRefs: [{name: web, port: 80}]}]
`

// TestWhatAChangeTakes: by hosts and ports, as they are before and after it.
func TestWhatAChangeTakes(t *testing.T) {
	listener := func(port v1.PortNumber, protocol v1.ProtocolType, name string) v1.Listener {
		l := v1.Listener{Name: "new", Port: port, Protocol: protocol}
		if name != "" {
			l.Hostname = new(v1.Hostname(name))
		}
		return l
	}
	for name, c := range map[string]struct {
		change func(in *Input)
		want   string
	}{
		"nothing":             {func(*Input) {}, ""},
		"a host":              {func(in *Input) { in.HTTPRoutes[0].Spec.Hostnames = []v1.Hostname{"guest.com"} }, `host "guest.com" of HTTPRoute guest/r`},
		"a wildcard":          {func(in *Input) { in.HTTPRoutes[0].Spec.Hostnames = []v1.Hostname{"*.com"} }, ""}, // another host
		"no host":             {func(in *Input) { in.HTTPRoutes[0].Spec.Hostnames = nil }, ""},                    // which guest does not name
		"a listener's host":   {func(in *Input) { in.Gateways[0].Spec.Listeners[0].Hostname = new(v1.Hostname("guest.com")) }, `host "guest.com" of HTTPRoute guest/r`},
		"another protocol":    {func(in *Input) { in.Gateways[0].Spec.Listeners[1] = listener(9443, v1.HTTPProtocolType, "") }, "port 9443 of the nodes of listener tls of Gateway guest/g"},
		"a host with TLS":     {func(in *Input) { in.Gateways[0].Spec.Listeners[1] = listener(9443, v1.HTTPSProtocolType, "guest.com") }, `host "guest.com" of Gateway guest/g, host "guest.com" of HTTPRoute guest/r`},
		"what it gives up":    {func(in *Input) { in.Gateways[0].Spec.Listeners = in.Gateways[0].Spec.Listeners[:1] }, ""},
		"a free port":         {func(in *Input) { in.Gateways[0].Spec.Listeners[1] = listener(5432, v1.HTTPProtocolType, "") }, ""},
		"another class, soon": {func(in *Input) { in.Gateways[0].Spec.GatewayClassName = "theirs" }, ""},
	} {
		before, in := world(t, twoTenants), world(t, twoTenants)
		c.change(&in)
		var got []string
		for _, l := range Losses(Build(before), Build(in), "ten") {
			if text := l.Thing + " of " + l.Holder; !slices.Contains(got, text) {
				got = append(got, text)
			}
		}
		if !sameWords(got, c.want) {
			t.Errorf("%s: takes %q, want %q", name, strings.Join(got, ", "), c.want)
		}
	}
}

func sameWords(got []string, want string) bool {
	all := strings.Split(want, ", ")
	if want == "" {
		all = nil
	}
	slices.Sort(all)
	slices.Sort(got)
	return slices.Equal(got, all)
}

// TestAnIngressTakesNothingOfARoute: hosts of Ingresses and Gateways are of one book.
func TestAnIngressTakesNothingOfARoute(t *testing.T) {
	before, after := world(t, twoTenants), world(t, twoTenants)
	before.Shared[80], after.Shared[80] = false, false
	after.Hosts = []hosts.Claim{shop("guest.com", true)}
	lost := Losses(Build(before), Build(after), "shop")
	if len(lost) != 1 || lost[0].Thing != `host "guest.com"` || lost[0].Holder != "HTTPRoute guest/r" || lost[0].By.GetName() != "web" {
		t.Errorf("%+v", lost)
	}
	after.Hosts = []hosts.Claim{shop("guest.com", false)}
	if lost := Losses(Build(before), Build(after), "shop"); len(lost) != 0 {
		t.Errorf("a younger one: %+v", lost)
	}
}
