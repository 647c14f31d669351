package hosts

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func claim(kind, namespace, gateway string, created int64, host Host, port int, shares ...string) Claim {
	o := &metav1.ObjectMeta{Namespace: namespace, Name: "x", CreationTimestamp: metav1.NewTime(time.Unix(created, 0))}
	if len(shares) > 0 {
		o.Annotations = map[string]string{Annotation: shares[0]}
	}
	return Claim{Port: port, Host: host, Kind: kind, Object: o, Gateway: gateway}
}

func TestWhoHasAHost(t *testing.T) {
	ingress := func(namespace string, created int64, host Host, shares ...string) Claim {
		return claim("Ingress", namespace, "", created, host, 0, shares...)
	}
	route := func(namespace, gateway string, created int64, host Host) Claim {
		return claim("HTTPRoute", namespace, gateway, created, host, 0)
	}
	for name, test := range map[string]struct {
		first, second Claim
		taken         bool
	}{
		"two Ingresses":                 {ingress("b", 1, "a.com"), ingress("a", 2, "a.com"), true},
		"of one second, by name":        {ingress("a", 1, "a.com"), ingress("b", 1, "a.com"), true},
		"of one namespace":              {ingress("a", 1, "a.com"), ingress("a", 2, "a.com"), false},
		"other hosts":                   {ingress("a", 1, "a.com"), ingress("b", 2, "b.com"), false},
		"a wildcard has no name":        {ingress("a", 1, "*.a.com"), ingress("b", 2, "x.a.com"), false},
		"no host":                       {ingress("a", 1, ""), ingress("b", 2, ""), true},
		"no host has no name":           {ingress("a", 1, ""), ingress("b", 2, "a.com"), false},
		"shared":                        {ingress("a", 1, "a.com", "c, b"), ingress("b", 2, "a.com"), false},
		"shared with all":               {ingress("a", 1, "a.com", "*"), ingress("b", 2, "a.com"), false},
		"shared with others":            {ingress("a", 1, "a.com", "c"), ingress("b", 2, "a.com"), true},
		"who comes later shares not":    {ingress("a", 1, "a.com"), ingress("b", 2, "a.com", "b,*"), true},
		"a route after an Ingress":      {ingress("a", 1, "a.com"), route("b", "b", 2, "a.com"), true},
		"a route of the namespace":      {ingress("a", 1, "a.com"), route("a", "b", 2, "a.com"), false},
		"an Ingress after a route":      {route("b", "b", 1, "a.com"), ingress("a", 2, "a.com"), true},
		"two routes of one Gateway":     {route("a", "infra", 1, "a.com"), route("b", "infra", 2, "a.com"), false},
		"routes of different Gateways":  {route("a", "a", 1, "a.com"), route("b", "b", 2, "a.com"), true},
		"one namespace, other Gateways": {route("a", "a", 1, "a.com"), route("a", "b", 2, "a.com"), false},
		"other ports":                   {claim("HTTPRoute", "a", "a", 1, "a.com", 80), claim("HTTPRoute", "b", "b", 2, "a.com", 81), false},
	} {
		for _, order := range [][]Claim{{test.first, test.second}, {test.second, test.first}} {
			b := New(order)
			if by, taken := b.Taken(test.first); taken {
				t.Errorf("%s: the first is kept out by %s", name, by)
			}
			if by, taken := b.Taken(test.second); taken != test.taken || taken && by.String() != test.first.String() {
				t.Errorf("%s: taken %v by %v", name, taken, by)
			}
			if _, taken := New([]Claim{test.second}).Taken(test.second); taken {
				t.Errorf("%s: the first has gone, and the other does not get the host", name)
			}
		}
	}
	if _, taken := (*Book)(nil).Taken(ingress("a", 1, "a.com")); taken {
		t.Error("the nil Book knows a host")
	}
}

func TestTheMoreSpecificHost(t *testing.T) {
	ordered := []Host{"", "*.com", "*.a.com", "x.a.com"}
	if !slices.IsSortedFunc(ordered, func(a, b Host) int { return a.Specificity() - b.Specificity() }) {
		t.Error("not in order")
	}
}

func TestWhatIsTold(t *testing.T) {
	first, second := claim("Ingress", "shop", "", 1, "a.com", 0), claim("HTTPRoute", "ten", "ten", 2, "a.com", 0)
	want := `host "a.com": Ingress x of namespace shop was first; its annotation setpoint.io/share-hosts-with can name namespace ten`
	if got := second.Message(first); got != want {
		t.Errorf("%s", got)
	}
}
