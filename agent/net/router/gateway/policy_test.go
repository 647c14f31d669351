package gateway

import (
	"net/http/httptest"
	"strings"
	"testing"
)

// policyOf is one for a target, which trusts the ConfigMap.
func policyOf(name, target, trust string) string {
	return "kind: BackendTLSPolicy\nmetadata: {name: " + name + "}\nspec: {targetRefs: [{group: '', kind: Service, " + target +
		"}], validation: {hostname: a.com, " + trust + "}}\n---\n"
}

const trusted = "caCertificateRefs: [{group: '', kind: ConfigMap, name: good}]"

// TestPolicies: what backends are asked by, and what is told of each policy.
func TestPolicies(t *testing.T) {
	for name, test := range map[string]struct {
		policies string
		// backend is "plain", "checked", or the code of answers; told is of each policy.
		backend, told string
	}{
		"none":            {"", "plain", ""},
		"one":             {policyOf("p", "name: web", trusted), "checked", "Accepted=Accepted ResolvedRefs=ResolvedRefs"},
		"of the machine":  {policyOf("p", "name: web", "wellKnownCACertificates: System"), "checked", "Accepted=Accepted ResolvedRefs=ResolvedRefs"},
		"of nobody known": {policyOf("p", "name: web", "wellKnownCACertificates: x.com/y"), "502", "Accepted!Invalid ResolvedRefs=ResolvedRefs"},
		"missing": {
			policyOf("p", "name: web", "caCertificateRefs: [{group: '', kind: ConfigMap, name: broken}]"), "502",
			"Accepted!NoValidCACertificate ResolvedRefs!InvalidCACertificateRef",
		},
		"no ConfigMap": {
			policyOf("p", "name: web", "caCertificateRefs: [{group: '', kind: Secret, name: good}]"), "502",
			"Accepted!NoValidCACertificate ResolvedRefs!InvalidKind",
		},
		"one of two": {
			policyOf("p", "name: web", "caCertificateRefs: [{group: '', kind: ConfigMap, name: broken}, {group: '', kind: ConfigMap, name: good}]"), "checked",
			"Accepted=Accepted ResolvedRefs!InvalidCACertificateRef",
		},
		"options": {
			policyOf("p", "name: web", trusted+"}, options: {a: b"), "502", "Accepted!Invalid ResolvedRefs=ResolvedRefs",
		},
		"of another Service":   {policyOf("p", "name: other", trusted), "plain", ""},
		"of another kind":      {strings.Replace(policyOf("p", "name: web", trusted), "kind: Service", "kind: Pod", 1), "plain", ""},
		"of another port":      {policyOf("p", "name: web, sectionName: other", trusted), "plain", ""},
		"of another namespace": {strings.Replace(policyOf("p", "name: web", trusted), "name: p", "name: p, namespace: far", 1), "plain", ""},
		"the older wins, also if it is not right": {
			policyOf("z", "name: web", "wellKnownCACertificates: x.com/y") + policyOf("a", "name: web", trusted), "502",
			"Accepted!Invalid ResolvedRefs=ResolvedRefs; Accepted!Conflicted ResolvedRefs=ResolvedRefs",
		},
	} {
		built := Build(world(t, gateway+test.policies+`
kind: HTTPRoute
spec:
  parentRefs: [{name: g}]
  rules: [{filters: [{type: RequestMirror, requestMirror: {backendRef: {name: web, port: 80}}}], backendRefs: [{name: web, port: 80}]}]
`))
		var told []string
		for _, p := range built.Policies {
			for _, a := range p.Ancestors {
				told = append(told, conditions(a.Conditions))
			}
		}
		if got := strings.Join(told, "; "); got != test.told {
			t.Errorf("%s: %s, want %s", name, got, test.told)
		}
		if got := askedBy(built.Ports[80]); got != test.backend {
			t.Errorf("%s: %s, want %s", name, got, test.backend)
		}
	}
}

func askedBy(p *Port) string {
	switch text := goesTo(p, "GET a.com/"); {
	case text != "web/":
		return text
	case p.Find("a.com", httptest.NewRequest("GET", "http://a.com/", nil)).Backend.TLS != nil:
		return "checked"
	}
	return "plain"
}

// TestPoliciesOfPorts: one for a port comes before one for the Service, and both count.
func TestPoliciesOfPorts(t *testing.T) {
	built := Build(world(t, gateway+policyOf("whole", "name: web", trusted)+policyOf("port", "name: web, sectionName: named", trusted)+`
kind: HTTPRoute
spec: {parentRefs: [{name: g}], rules: [{backendRefs: [{name: web, port: 90}]}]}
`))
	if len(built.Policies[0].Ancestors) != 0 || len(built.Policies[1].Ancestors) != 1 {
		t.Errorf("%+v", built.Policies)
	}
}
