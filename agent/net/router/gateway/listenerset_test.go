package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const openGateway = `
kind: Gateway
metadata: {name: g}
spec:
  gatewayClassName: ours
  listeners: [{name: own, port: 80, protocol: HTTP, hostname: own.com}]
  allowedListeners: {namespaces: {from: %s}}
---
`

func setOf(name, namespace, listeners string) string {
	return "kind: ListenerSet\nmetadata: {name: " + name + ", namespace: " + namespace + "}\nspec: {parentRef: {name: g, namespace: home}, listeners: [" + listeners + "]}\n"
}

func TestListenerSets(t *testing.T) {
	const (
		good  = "Accepted=Accepted Programmed=Programmed"
		wrong = "Accepted!ListenersNotValid Programmed!ListenersNotValid"
		half  = "Accepted=ListenersNotValid Programmed=Programmed"
		web   = "{name: web, port: 80, protocol: HTTP, hostname: web.com}"
	)
	for name, test := range map[string]struct {
		from, sets string
		told       []string
		attached   int32
		ports      []int32
	}{
		"same namespace":  {"Same", setOf("a", "home", web), []string{good}, 1, []int32{80}},
		"other namespace": {"Same", setOf("a", "far", web), []string{"Accepted!NotAllowed Programmed!NotAllowed"}, 0, []int32{80}},
		"all":             {"All", setOf("a", "far", "{name: web, port: 81, protocol: HTTP}"), []string{good}, 1, []int32{80, 81}},
		"chosen":          {"Selector, selector: {matchLabels: {is: far}}", setOf("a", "far", web), []string{good}, 1, []int32{80}},
		"none":            {"None", setOf("a", "home", web), []string{"Accepted!NotAllowed Programmed!NotAllowed"}, 0, []int32{80}},
		"the Gateway's own come first": {
			"Same", setOf("a", "home", "{name: x, port: 80, protocol: HTTP, hostname: own.com}"), []string{wrong}, 0, []int32{80},
		},
		"the older set comes first": {
			"Same", setOf("z", "home", web) + "---\n" + setOf("a", "home", web+", {name: y, port: 82, protocol: HTTP}"), []string{good, half}, 2, []int32{80, 82},
		},
		"a Secret of another namespace": {
			"All", setOf("a", "far", "{name: x, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: s, namespace: home}]}}"), []string{wrong}, 0, []int32{80},
		},
		"its own Secret": {
			"All", setOf("a", "far", "{name: x, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: s}]}}"), []string{good}, 1, []int32{80, 443},
		},
		"TCP at a port of HTTP": {"Same", setOf("a", "home", "{name: x, port: 80, protocol: TCP}"), []string{wrong}, 0, []int32{80}},
		"of another Gateway":    {"Same", strings.Replace(setOf("a", "home", web), "name: g", "name: other", 1), nil, 0, []int32{80}},
	} {
		built := Build(world(t, fmt.Sprintf(openGateway, test.from)+test.sets))
		var told []string
		for _, s := range built.Sets {
			told = append(told, conditions(s.Conditions))
		}
		g := built.Gateways[0]
		if !slices.Equal(told, test.told) || g.Sets != test.attached || !slices.Equal(g.Ports, test.ports) {
			t.Errorf("%s: %q, %d attached, ports %v", name, told, g.Sets, g.Ports)
		}
	}
}

// TestRoutesOfListenerSets: a route attaches to the listeners of the parent that it names, and to no others.
func TestRoutesOfListenerSets(t *testing.T) {
	built := Build(world(t, fmt.Sprintf(openGateway, "All")+
		setOf("set", "far", "{name: web, port: 80, protocol: HTTP, hostname: web.com}")+`---
kind: HTTPRoute
metadata: {name: a}
spec: {parentRefs: [{name: g}], rules: [{backendRefs: [{name: gateway, port: 80}]}]}
---
kind: HTTPRoute
metadata: {name: b, namespace: far}
spec: {parentRefs: [{name: set, kind: ListenerSet}, {name: set, kind: ListenerSet, sectionName: own}], rules: [{backendRefs: [{name: set, port: 80}]}]}
---
kind: HTTPRoute
metadata: {name: c}
spec: {parentRefs: [{name: set, kind: ListenerSet, namespace: far}], rules: [{backendRefs: [{name: foreign, port: 80}]}]}
`))
	for asked, want := range map[string]string{"GET own.com/": "gateway/", "GET web.com/": "set/", "GET other.com/": "404"} {
		if got := goesTo(built.Ports[80], asked); got != want {
			t.Errorf("%s: %s, want %s", asked, got, want)
		}
	}
	var told []string
	for _, r := range built.Routes {
		for _, p := range r.Parents {
			told = append(told, strings.Fields(conditions(p.Conditions))[0])
		}
	}
	if want := []string{"Accepted=Accepted", "Accepted=Accepted", "Accepted!NoMatchingParent", "Accepted!NotAllowedByListeners"}; !slices.Equal(told, want) {
		t.Errorf("%q", told)
	}
}

func TestTooManyListeners(t *testing.T) {
	var all []string
	for i := range listenersMax + 10 {
		all = append(all, fmt.Sprintf("{name: l%d, port: 80, protocol: HTTP, hostname: h%d.com}", i, i))
	}
	built := Build(world(t, fmt.Sprintf(openGateway, "Same")+setOf("a", "home", strings.Join(all, ", "))))
	over := 0
	for _, l := range built.Sets[0].Listeners {
		if strings.Contains(conditions(l.Conditions), "Accepted!TooManyListeners") {
			over++
		}
	}
	if over != 11 {
		t.Errorf("%d are too many", over)
	}
}

// TestPortsAreDivided: a namespace whose Gateways want more ports than nodes open leaves others theirs, also if they come later.
func TestPortsAreDivided(t *testing.T) {
	var text strings.Builder
	for g := range 5 {
		var all []string
		for i := range 60 {
			all = append(all, fmt.Sprintf("{name: l%d, port: %d, protocol: HTTP}", i, 9000+60*g+i))
		}
		fmt.Fprintf(&text, "kind: Gateway\nmetadata: {name: g%d, namespace: ten}\nspec: {gatewayClassName: ours, listeners: [%s]}\n---\n", g, strings.Join(all, ", "))
	}
	text.WriteString("kind: Gateway\nmetadata: {name: g, namespace: shop}\nspec: {gatewayClassName: ours, listeners: [" +
		"{name: a, port: 8000, protocol: HTTP}, {name: b, port: 8001, protocol: HTTP}, {name: c, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: s}]}}]}\n")
	built := Build(world(t, text.String()))
	count, refused := map[string]int{}, 0
	for _, port := range built.Ports {
		count[port.first.Namespace]++
	}
	for _, g := range built.Gateways {
		for _, l := range g.Listeners {
			if strings.Contains(conditions(l.Conditions), "Accepted!PortUnavailable") {
				refused++
			}
		}
	}
	if count["shop"] != 3 || count["ten"] != portsMax-2 || refused != 300-portsMax+2 {
		t.Errorf("%v, %d are refused", count, refused)
	}
}
