package apiserver

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A definition of jobs that wait for a controller from their beginning, as GatewayClasses of the Gateway API do.
const waiters = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: waiters.stable.example.com}
spec:
  group: stable.example.com
  scope: Cluster
  names: {plural: waiters, singular: waiter, kind: Waiter, listKind: WaiterList}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, properties: {
      spec: {type: object, properties: {a: {type: string}}},
      status: {type: object, default: {phase: Pending}, properties: {phase: {type: string}, tries: {type: integer, default: 0}}}}}}
`

// TestANewObjectHasItsDefaultStatus: what is answered to whoever creates an object is what a read would show, however it is created. A
// status that the client sends counts nothing.
func TestANewObjectHasItsDefaultStatus(t *testing.T) {
	server := newCustomServer(t)
	define(t, server, waiters)
	const path = "/apis/stable.example.com/v1/waiters"
	body := func(name string) string {
		return `{"apiVersion":"stable.example.com/v1","kind":"Waiter","metadata":{` + name + `},"spec":{"a":"x"},"status":{"phase":"Done"}}`
	}
	for name, c := range map[string]call{
		"create":         {method: "POST", path: path, body: body(`"name":"a"`)},
		"generated name": {method: "POST", path: path, body: body(`"generateName":"b-"`)},
		"dry run":        {method: "POST", path: path + "?dryRun=All", body: body(`"name":"c"`)},
		"apply":          {method: "PATCH", path: path + "/d?fieldManager=me", contentType: patchTypeOf["apply"], body: body(`"name":"d"`)},
	} {
		t.Run(name, func(t *testing.T) {
			created := mustDo[unstructured.Unstructured](t, server, c)
			want := map[string]any{"phase": "Pending", "tries": int64(0)}
			if diff := cmp.Diff(want, created.Object["status"]); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(c.path, "dryRun") {
				return
			}
			read := mustDo[unstructured.Unstructured](t, server, call{method: "GET", path: path + "/" + created.GetName()})
			if diff := cmp.Diff(read.Object, created.Object); diff != "" {
				t.Errorf("read and created differ:\n%s", diff)
			}
		})
	}
}
