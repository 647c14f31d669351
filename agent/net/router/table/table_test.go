package table

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// world is Services that all exist, with one endpoint each, unless their name says otherwise.
func world(ingresses ...*networkingv1.Ingress) Input {
	return Input{
		Classes: []*networkingv1.IngressClass{
			{ObjectMeta: metav1.ObjectMeta{Name: "setpoint"}, Spec: networkingv1.IngressClassSpec{Controller: Controller}},
			{ObjectMeta: metav1.ObjectMeta{Name: "nginx"}, Spec: networkingv1.IngressClassSpec{Controller: "k8s.io/ingress-nginx"}},
		},
		Ingresses: ingresses,
		Service: func(_, name string) *corev1.Service {
			s := &corev1.Service{Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "udp", Port: 53, Protocol: "UDP"}}}}
			switch name {
			case "missing":
				return nil
			case "elsewhere":
				s.Spec.Type = corev1.ServiceTypeExternalName
			case "grpc":
				s.Spec.Ports[0].AppProtocol = ptr("kubernetes.io/h2c")
			}
			return s
		},
		Slices: func(string, string) []*discoveryv1.EndpointSlice {
			return []*discoveryv1.EndpointSlice{slice("http", 8080, endpoint("10.0.0.1", true, true, false))}
		},
		Certificate: func(_, secret string) (*tls.Certificate, error) {
			if secret == "broken" {
				return nil, errors.New("it has no tls.crt")
			}
			return &tls.Certificate{Certificate: [][]byte{[]byte(secret)}}, nil
		},
	}
}

func ptr[T any](v T) *T { return &v }

func slice(port string, number int32, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{Ports: []discoveryv1.EndpointPort{{Name: &port, Port: &number}}, Endpoints: endpoints}
}

func endpoint(at string, ready, serving, ending bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{at}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &serving, Terminating: &ending}}
}

var made = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// ingress has paths "host|type|path|service", the type by its first letter; each one made is younger than the one before.
func ingress(name string, rules ...string) *networkingv1.Ingress {
	made = made.Add(time.Second)
	i := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, CreationTimestamp: metav1.NewTime(made)}}
	i.Spec.IngressClassName = ptr("setpoint")
	types := map[string]networkingv1.PathType{
		"E": networkingv1.PathTypeExact, "P": networkingv1.PathTypePrefix, "I": networkingv1.PathTypeImplementationSpecific,
	}
	for _, rule := range rules {
		part := strings.SplitN(rule, "|", 3)
		at := strings.LastIndexByte(part[2], '|')
		part = append(part[:2], part[2][:at], part[2][at+1:])
		i.Spec.Rules = append(i.Spec.Rules, networkingv1.IngressRule{Host: part[0], IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: part[2], PathType: ptr(types[part[1]]), Backend: backend(part[3])}}},
		}})
	}
	return i
}

func backend(service string) networkingv1.IngressBackend {
	return networkingv1.IngressBackend{Service: &networkingv1.IngressServiceBackend{Name: service, Port: networkingv1.ServiceBackendPort{Number: 80}}}
}

func annotated(i *networkingv1.Ingress, pairs ...string) *networkingv1.Ingress {
	i.Annotations = map[string]string{}
	for n := 0; n < len(pairs); n += 2 {
		i.Annotations[annotationPrefix+pairs[n]] = pairs[n+1]
	}
	return i
}

func service(r *Route) string {
	if r == nil {
		return ""
	}
	return r.Backend.Service
}

// TestPaths is the table of the API's documentation (concepts/services-networking/ingress/#examples), and what it leaves open.
func TestPaths(t *testing.T) {
	for _, test := range []struct {
		rules         []string
		asked, wanted string // "path=service" by spaces
	}{
		{[]string{"|P|/|a"}, "", "/=a /x=a /x/y=a"},
		{[]string{"|E|/foo|a"}, "", "/foo=a /bar= /foo/= /foo/x="},
		{[]string{"|E|/foo/|a"}, "", "/foo= /foo/=a"},
		{[]string{"|P|/foo|a"}, "", "/foo=a /foo/=a /foobar= /foo/bar=a"},
		{[]string{"|P|/foo/|a"}, "", "/foo=a /foo/=a"},
		{[]string{"|P|/aaa/bb|a"}, "", "/aaa/bbb= /aaa/bb/ccc=a"},
		{[]string{"|P|/aaa/bbb|a"}, "", "/aaa/bbb/=a /aaa/bbb/ccc=a /aaa/bbbxyz="},
		{[]string{"|P|/|a", "|P|/aaa|b"}, "", "/aaa/ccc=b /ccc=a"},
		{[]string{"|P|/|a", "|P|/aaa|b", "|P|/aaa/bbb|c"}, "", "/aaa/bbb/ccc=c"},
		{[]string{"|P|/foo|a", "|E|/foo|b"}, "", "/foo=b /foo/=a"},
		{[]string{"|I|/foo|a"}, "", "/foo/x=a /foobar="},
		{[]string{"|P|/open|a", "|P|/closed|b"}, "", "/open/../closed=b //closed=b /open/./x=a /closed/..= /../closed=b"},
		{[]string{"|P|/Foo|a"}, "", "/foo= /Foo=a"},
		{[]string{"|P||a"}, "", "/x=a"},
		{[]string{"a.com|P|/|a", "*.a.com|P|/|w", "|P|/|any"}, "a.com", "/=a"},
		{[]string{"a.com|P|/|a", "*.a.com|P|/|w", "|P|/|any"}, "x.a.com", "/=w"},
		{[]string{"a.com|P|/|a", "*.a.com|P|/|w", "|P|/|any"}, "y.x.a.com", "/=any"},
		{[]string{"a.com|P|/|a", "*.a.com|P|/|w", "|P|/|any"}, "b.com", "/=any"},
		{[]string{"a.com|P|/|a"}, "A.COM.", "/=a"},
		{[]string{"a.com|P|/a|a", "|P|/|any"}, "a.com", "/b="},
		{[]string{"x.a.com|P|/a|a", "*.a.com|P|/b|w"}, "x.a.com", "/b="},
	} {
		table, problems := Build(world(ingress("i", test.rules...)))
		for _, pair := range strings.Fields(test.wanted) {
			path, want, _ := strings.Cut(pair, "=")
			if got := service(table.Find(test.asked, path)); got != want {
				t.Errorf("%v: %s%s goes to %q, want %q", test.rules, test.asked, path, got, want)
			}
		}
		if len(problems) > 0 {
			t.Errorf("%v: %+v", test.rules, problems)
		}
	}
}

// TestTheOlderWins: whoever came first keeps a host and path; the other is told.
func TestTheOlderWins(t *testing.T) {
	older, younger := ingress("older", "a.com|P|/x|a"), ingress("younger", "a.com|P|/x|b", "a.com|P|/y|b", "a.com|E|/x|e")
	table, problems := Build(world(younger, older))
	for path, want := range map[string]string{"/x/1": "a", "/y": "b", "/x": "e"} {
		if got := service(table.Find("a.com", path)); got != want {
			t.Errorf("%s goes to %q, want %q", path, got, want)
		}
	}
	if len(problems) != 1 || problems[0].Ingress != younger || problems[0].Reason != "Conflict" || !strings.Contains(problems[0].Message, "n/older") {
		t.Errorf("%+v", problems)
	}
}

func TestDefaultBackends(t *testing.T) {
	first, second := ingress("first", "a.com|P|/x|a"), ingress("second", "b.com|P|/x|b")
	first.Spec.DefaultBackend, second.Spec.DefaultBackend = ptr(backend("d1")), ptr(backend("d2"))
	third := ingress("third")
	third.Spec.DefaultBackend = ptr(backend("d3"))
	table, problems := Build(world(first, second, third))
	for at, want := range map[string]string{"a.com/x": "a", "a.com/y": "d1", "b.com/y": "d2", "c.com/": "d1"} {
		host, path, _ := strings.Cut(at, "/")
		if got := service(table.Find(host, "/"+path)); got != want {
			t.Errorf("%s goes to %q, want %q", at, got, want)
		}
	}
	if len(problems) != 1 || problems[0].Ingress != third {
		t.Errorf("%+v", problems)
	}
}

func TestWhoseIngressesAreOurs(t *testing.T) {
	mine, old, nginx, none, gone, ending := ingress("mine"), ingress("old"), ingress("nginx"), ingress("none"), ingress("gone"), ingress("ending")
	old.Spec.IngressClassName, old.Annotations = nil, map[string]string{classAnnotation: "setpoint"}
	nginx.Spec.IngressClassName, none.Spec.IngressClassName, gone.Spec.IngressClassName = ptr("nginx"), nil, ptr("gone")
	ending.DeletionTimestamp = &metav1.Time{Time: made}
	in := world()
	got := Ours(in.Classes, []*networkingv1.Ingress{ending, gone, none, nginx, old, mine})
	if !slices.Equal(got, []*networkingv1.Ingress{mine, old}) {
		t.Errorf("%v", got)
	}
}

// TestProblems: what cannot be served as it says is told, and the rest is served.
func TestProblems(t *testing.T) {
	for name, test := range map[string]struct {
		ingress *networkingv1.Ingress
		want    string
	}{
		"Service missing": {ingress("i", "|P|/|missing"), "BackendMissing"},
		"ExternalName":    {ingress("i", "|P|/|elsewhere"), "BackendMissing"},
		"port missing":    {func() *networkingv1.Ingress { i := ingress("i", "|P|/|a"); port(i).Number = 81; return i }(), "BackendMissing"},
		"port of UDP":     {func() *networkingv1.Ingress { i := ingress("i", "|P|/|a"); port(i).Number = 53; return i }(), "BackendMissing"},
		"resource": {func() *networkingv1.Ingress {
			i := ingress("i", "|P|/|a")
			i.Spec.Rules[0].HTTP.Paths[0].Backend.Service = nil
			return i
		}(), "UnsupportedBackend"},
		"unknown annotation": {annotated(ingress("i", "|P|/|a"), "lua-resty-waf", "active"), "AnnotationNotHonoured"},
		"no number":          {annotated(ingress("i", "|P|/|a"), "proxy-read-timeout", "soon"), "InvalidAnnotation"},
		"years":              {annotated(ingress("i", "|P|/|a"), "proxy-connect-timeout", "99999999"), "InvalidAnnotation"},
		"no size":            {annotated(ingress("i", "|P|/|a"), "proxy-body-size", "-1"), "InvalidAnnotation"},
		"no boolean":         {annotated(ingress("i", "|P|/|a"), "ssl-redirect", "perhaps"), "InvalidAnnotation"},
		"no page":            {annotated(ingress("i", "|P|/|a"), "permanent-redirect", "javascript:alert(1)"), "InvalidAnnotation"},
		"no protocol":        {annotated(ingress("i", "|P|/|a"), "backend-protocol", "FCGI"), "InvalidAnnotation"},
		"no expression":      {annotated(ingress("i", "|I|/(|a"), "use-regex", "true"), "InvalidPath"},
		"long expression":    {annotated(ingress("i", "|I|/"+strings.Repeat("x", 600)+"|a"), "use-regex", "true"), "InvalidPath"},
		"certificate": {func() *networkingv1.Ingress {
			i := ingress("i", "a.com|P|/|a")
			i.Spec.TLS = []networkingv1.IngressTLS{{SecretName: "broken"}}
			return i
		}(), "InvalidCertificate"},
	} {
		_, problems := Build(world(test.ingress))
		if len(problems) != 1 || problems[0].Reason != test.want || problems[0].Message == "" {
			t.Errorf("%s: %+v, want %s", name, problems, test.want)
		}
	}
}

func port(i *networkingv1.Ingress) *networkingv1.ServiceBackendPort {
	return &i.Spec.Rules[0].HTTP.Paths[0].Backend.Service.Port
}

func TestEndpoints(t *testing.T) {
	ready, waits, ends := endpoint("10.0.0.1", true, true, false), endpoint("10.0.0.2", false, false, false), endpoint("10.0.0.3", false, true, true)
	six := slice("http", 8080, endpoint("fd42::1", true, true, false))
	six.AddressType = discoveryv1.AddressTypeIPv6
	four := slice("http", 8080, ready)
	four.AddressType = discoveryv1.AddressTypeIPv4
	for families, want := range map[string]string{
		"": "[[fd42::1]:8080 10.0.0.1:8080]", "IPv4 IPv6": "[10.0.0.1:8080]", "IPv6 IPv4": "[[fd42::1]:8080]",
	} {
		var of []corev1.IPFamily
		for _, family := range strings.Fields(families) {
			of = append(of, corev1.IPFamily(family))
		}
		if got := fmt.Sprint(endpoints([]*discoveryv1.EndpointSlice{six, four}, "http", of)); got != want {
			t.Errorf("families %s: %s, want %s", families, got, want)
		}
	}
	both := []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	if got := fmt.Sprint(endpoints([]*discoveryv1.EndpointSlice{six}, "http", both)); got != "[[fd42::1]:8080]" {
		t.Errorf("none of the first family: %s", got)
	}
	for name, test := range map[string]struct {
		slices []*discoveryv1.EndpointSlice
		want   string
	}{
		"ready only":                     {[]*discoveryv1.EndpointSlice{slice("http", 8080, ready, waits, ends)}, "[10.0.0.1:8080]"},
		"nothing better than one ending": {[]*discoveryv1.EndpointSlice{slice("http", 8080, waits, ends)}, "[10.0.0.3:8080]"},
		"of all slices":                  {[]*discoveryv1.EndpointSlice{slice("http", 1, ready), slice("http", 2, ready), slice("other", 3, ready)}, "[10.0.0.1:1 10.0.0.1:2]"},
		"not known to be unready":        {[]*discoveryv1.EndpointSlice{slice("http", 1, discoveryv1.Endpoint{Addresses: []string{"10.0.0.9"}})}, "[10.0.0.9:1]"},
		"none on the node itself":        {[]*discoveryv1.EndpointSlice{slice("http", 1, endpoint("127.0.0.1", true, true, false), endpoint("169.254.169.254", true, true, false), endpoint("x", true, true, false))}, "[]"},
	} {
		if got := fmt.Sprint(endpoints(test.slices, "http", nil)); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestOptions(t *testing.T) {
	closed := annotated(ingress("i", "|P|/|a"), "whitelist-source-range", "10.0.0.0/8,everybody")
	table, _ := Build(world(closed))
	if o := table.Find("", "/").Options; o.Allows(netip.MustParseAddr("10.0.0.1")) {
		t.Error("rules that cannot be read let somebody in")
	}
	open := annotated(ingress("i", "|P|/|a"), "whitelist-source-range", "10.0.0.0/8, 192.0.2.1", "proxy-body-size", "8m", "backend-protocol", "GRPC", "proxy-read-timeout", "5")
	table, _ = Build(world(open))
	o := table.Find("", "/").Options
	for at, want := range map[string]bool{"10.1.2.3": true, "192.0.2.1": true, "192.0.2.2": false, "::ffff:10.0.0.1": true, "::1": false} {
		if got := o.Allows(netip.MustParseAddr(at)); got != want {
			t.Errorf("%s: %t", at, got)
		}
	}
	if o.BodyBytesMax != 8<<20 || o.ReadTimeout != 5*time.Second || o.ConnectTimeout != DefaultConnectTimeout || table.Find("", "/").Backend.Protocol != H2C {
		t.Errorf("%+v", o)
	}
}

func TestRewrites(t *testing.T) {
	for _, test := range []struct{ path, target, asked, want string }{
		{"/app(/|$)(.*)", "/$2", "/app/x/y", "/x/y"},
		{"/app(/|$)(.*)", "/$2", "/app", "/"},
		{"/app(/|$)(.*)", "/$2", "/APP/x", "/x"},
		{"/app", "/", "/app/x", "/"},
		{"/app/(.*)", "$1", "/app//evil.example.com", "/evil.example.com"},
	} {
		table, problems := Build(world(annotated(ingress("i", "|I|"+test.path+"|a"), "rewrite-target", test.target)))
		path := Clean(test.asked)
		found := table.Find("", path)
		if found == nil || len(problems) > 0 {
			t.Errorf("%s: nobody serves %s; %v", test.path, test.asked, problems)
			continue
		}
		if got := found.Target(path); got != test.want {
			t.Errorf("%s to %s: %s becomes %s, want %s", test.path, test.target, test.asked, got, test.want)
		}
	}
}

func TestCertificates(t *testing.T) {
	i := ingress("i", "a.com|P|/|a", "x.b.com|P|/|a", "c.com|P|/|a")
	i.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"A.com"}, SecretName: "one"}, {Hosts: []string{"*.b.com"}, SecretName: "two"}}
	thief := ingress("thief", "a.com|P|/t|a")
	thief.Spec.TLS = []networkingv1.IngressTLS{{Hosts: []string{"a.com"}, SecretName: "three"}}
	table, problems := Build(world(i, thief))
	for name, want := range map[string]string{"a.com": "one", "x.b.com": "two", "b.com": "", "y.x.b.com": "", "c.com": ""} {
		got := ""
		if c := table.Certificate(name); c != nil {
			got = string(c.Certificate[0])
		}
		if got != want {
			t.Errorf("%s has certificate %q, want %q", name, got, want)
		}
	}
	if len(problems) != 1 || problems[0].Ingress != thief {
		t.Errorf("%+v", problems)
	}
	if !table.Find("a.com", "/").Options.RedirectTLS || table.Find("c.com", "/").Options.RedirectTLS {
		t.Error("only hosts with TLS are sent to it")
	}
}

// TestLookupsAreAPlainSearch compares lookups with a search through all paths, on random rules.
func TestLookupsAreAPlainSearch(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	segment := func() string { return string("abc"[rng.IntN(3)]) }
	for range 300 {
		var rules []string
		for range rng.IntN(8) {
			path := "/" + segment()
			for range rng.IntN(3) {
				path += "/" + segment()
			}
			rules = append(rules, fmt.Sprintf("|%s|%s%s|s%d", string("EP"[rng.IntN(2)]), path, []string{"", "/"}[rng.IntN(2)], len(rules)))
		}
		table, _ := Build(world(ingress("i", rules...)))
		for range 20 {
			asked := "/" + segment() + "/" + segment() + []string{"", "/", "/" + segment()}[rng.IntN(3)]
			if got, want := service(table.Find("", asked)), plain(rules, asked); got != want {
				t.Fatalf("%v: %s goes to %q, want %q", rules, asked, got, want)
			}
		}
	}
}

// plain follows the words of the documentation: exact, or the longest prefix of elements; the first of equals.
func plain(rules []string, asked string) (found string) {
	longest := -1
	for _, rule := range rules {
		part := strings.Split(rule, "|")
		prefix := strings.TrimSuffix(part[2], "/")
		switch {
		case part[1] == "E" && part[2] == asked:
			return part[3]
		case part[1] == "P" && (asked == prefix || strings.HasPrefix(asked, prefix+"/")) && len(prefix) > longest:
			longest, found = len(prefix), part[3]
		}
	}
	return found
}

func BenchmarkFind(b *testing.B) {
	for _, hosts := range []int{5, 5000} {
		b.Run(fmt.Sprint(hosts), func(b *testing.B) {
			var all []*networkingv1.Ingress
			for n := range hosts {
				all = append(all, ingress(fmt.Sprint(n), fmt.Sprintf("h%d.com|P|/api|a", n), fmt.Sprintf("h%d.com|P|/|a", n)))
			}
			table, _ := Build(world(all...))
			for b.Loop() {
				if table.Find("h3.com", "/api/v1/things/7") == nil {
					b.Fatal("nobody")
				}
			}
		})
	}
}

func FuzzFind(f *testing.F) {
	table, _ := Build(world(ingress("i", "a.com|P|/x|a", "*.a.com|E|/y|b"), annotated(ingress("r", "r.com|I|/app(/|$)(.*)|c"), "rewrite-target", "/$2")))
	f.Add("a.com", "/x/../y")
	f.Add("R.com", "//app//")
	f.Fuzz(func(t *testing.T, host, path string) {
		if found := table.Find(host, path); found != nil && !strings.HasPrefix(found.Target(Clean(path)), "/") {
			t.Errorf("%q %q becomes %q", host, path, found.Target(Clean(path)))
		}
	})
}
