package gateway

import (
	"fmt"
	"testing"
)

// TestStreams: of the hostnames of listeners and routes the most specific decide, and one port has all modes.
func TestStreams(t *testing.T) {
	built := Build(world(t, `
kind: Gateway
metadata: {name: g}
spec:
  gatewayClassName: ours
  listeners:
  - {name: passed, port: 443, protocol: TLS, hostname: "*.example.com", tls: {mode: Passthrough}}
  - {name: ended, port: 443, protocol: TLS, hostname: ended.example.com, tls: {mode: Terminate, certificateRefs: [{name: s}]}}
  - {name: requests, port: 443, protocol: HTTPS, hostname: web.example.com, tls: {certificateRefs: [{name: s}]}}
  - {name: only, port: 444, protocol: TLS, hostname: only.com, tls: {mode: Passthrough}}
---
kind: TLSRoute
metadata: {name: old}
spec: {parentRefs: [{name: g}], hostnames: ["*.example.com"], rules: [{backendRefs: [{name: old, port: 80}]}]}
---
kind: TLSRoute
metadata: {name: young}
spec: {parentRefs: [{name: g}], hostnames: ["*.example.com", young.example.com], rules: [{backendRefs: [{name: young, port: 80}]}]}
---
kind: TLSRoute
metadata: {name: lost}
spec: {parentRefs: [{name: g}], hostnames: [lost.example.com], rules: [{backendRefs: [{name: missing, port: 80}]}]}
`))
	for asked, want := range map[string]string{
		"443 a.example.com": "2 old", "443 a.b.example.com": "2 old", "443 Young.example.com.": "2 young", "443 ended.example.com": "1 old",
		"443 web.example.com": "0", "443 example.com": "unknown", "443 ": "unknown", "443 lost.example.com": "2 500", "444 only.com": "2",
	} {
		var port int
		var name string
		_, _ = fmt.Sscanf(asked, "%d %s", &port, &name)
		got := "unknown"
		if mode, to, _, known := built.Ports[port].Stream(name); known {
			got = fmt.Sprint(int(mode))
			if to != nil && to.Code != 0 {
				got += fmt.Sprint(" ", to.Code)
			} else if to != nil {
				got += " " + to.Backend.Service
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", asked, got, want)
		}
	}
	if p := built.Ports[443]; !p.Streams || !p.Requests || built.Ports[444].Requests {
		t.Errorf("%+v", p)
	}
	if got := goesTo(built.Ports[443], "GET a.example.com/"); got != "404" {
		t.Errorf("a request for a listener that copies connections: %s", got)
	}
}

// TestOneModeForAHostname: Gateways that share a port do not change what others say of a hostname.
func TestOneModeForAHostname(t *testing.T) {
	const other = "kind: Gateway\nmetadata: {name: %s}\nspec: {gatewayClassName: ours, listeners: [{name: a, port: 443, protocol: %s, hostname: %s, tls: {%s}}]}\n"
	const passed, ended = "mode: Passthrough", "certificateRefs: [{name: s}]"
	for name, test := range map[string]struct {
		second string
		want   string
	}{
		"same":        {fmt.Sprintf(other, "b", "TLS", "a.com", passed), "Accepted=Accepted"},
		"mode":        {fmt.Sprintf(other, "b", "TLS", "a.com", ended), "Accepted!ListenersNotValid"},
		"protocol":    {fmt.Sprintf(other, "b", "HTTPS", "a.com", ended), "Accepted!ListenersNotValid"},
		"other name":  {fmt.Sprintf(other, "b", "HTTPS", "b.com", ended), "Accepted=Accepted"},
		"wildcard":    {fmt.Sprintf(other, "b", "TLS", `"*.com"`, ended), "Accepted=Accepted"},
		"any name":    {fmt.Sprintf(other, "b", "TLS", `""`, ended), "Accepted=Accepted"},
		"no mode":     {fmt.Sprintf(other, "b", "TLS", "c.com", ""), "Accepted=Accepted"},
		"certificate": {fmt.Sprintf(other, "b", "TLS", "c.com", "mode: Terminate, certificateRefs: [{name: broken}]"), "Accepted=Accepted"},
	} {
		built := Build(world(t, fmt.Sprintf(other, "a", "TLS", "a.com", passed)+"---\n"+test.second))
		if got := conditions(built.Gateways[1].Conditions); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}
