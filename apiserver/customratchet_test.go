package apiserver

import (
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A definition of things whose parts were judged by nothing at first.
const things = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.stable.example.com}
spec:
  group: stable.example.com
  scope: Cluster
  names: {plural: things, singular: thing, kind: Thing, listKind: ThingList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, properties: {old: {type: string}, other: {type: string}}},
      status: {type: object, properties: {old: {type: string}, other: {type: string}}}}}}
`

const rule = `"x-kubernetes-validations":[{"rule":"self != 'bad'","message":"is bad"}]`

// TestRatchetedRulesWarn: what breaks a rule that came later, and is not changed, stays, and each write of it warns.
func TestRatchetedRulesWarn(t *testing.T) {
	server := newCustomServer(t)
	define(t, server, things)
	const path = "/apis/stable.example.com/v1/things"
	mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: path, body: `{"apiVersion":"stable.example.com/v1","kind":"Thing","metadata":{"name":"a"},"spec":{"old":"bad"}}`})
	mustDo[unstructured.Unstructured](t, server, call{method: "PATCH", path: path + "/a/status", contentType: patchTypeOf["merge"], body: `{"status":{"old":"bad"}}`})
	part := `{"type":"object","properties":{"old":{"type":"string",` + rule + `},"other":{"type":"string"}}}`
	mustDo[apiextensionsv1.CustomResourceDefinition](t, server, call{method: "PATCH", contentType: patchTypeOf["json"],
		path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.stable.example.com",
		body: `[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec","value":` + part + `},` +
			`{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema/properties/status","value":` + part + `}]`})
	for name, c := range map[string]struct {
		path, body string
		code       int
		warning    string
	}{
		"beside it":           {"/a", `{"spec":{"other":"x"}}`, http.StatusOK, `spec.old: Invalid value: \"bad\": is bad`},
		"beside it, in place": {"/a/status", `{"status":{"other":"x"}}`, http.StatusOK, `status.old: Invalid value: \"bad\": is bad`},
		"the value itself":    {"/a", `{"spec":{"old":"bad","other":null}}`, http.StatusOK, `spec.old: Invalid value: \"bad\": is bad`},
	} {
		t.Run(name, func(t *testing.T) {
			got := call{method: "PATCH", path: path + c.path, contentType: patchTypeOf["merge"], body: c.body}.do(t, server)
			if warnings := strings.Join(got.header.Values("Warning"), "\n"); got.code != c.code || !strings.Contains(warnings, c.warning) {
				t.Errorf("%d, warnings %q\n%s", got.code, warnings, got.body)
			}
		})
	}
	created := call{method: "POST", path: path, body: `{"apiVersion":"stable.example.com/v1","kind":"Thing","metadata":{"name":"b"},"spec":{"old":"bad"}}`}.do(t, server)
	if created.code != http.StatusUnprocessableEntity {
		t.Errorf("a new one: %d %s", created.code, created.body)
	}
}
