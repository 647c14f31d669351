package apiserver

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/apiserver/crd"
	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

const (
	crdPath     = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	crontabPath = "/apis/stable.example.com/v1/namespaces/default/crontabs"
)

// crontabs is a definition with about everything in it.
const crontabs = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crontabs.stable.example.com}
spec:
  group: stable.example.com
  scope: Namespaced
  names: {plural: crontabs, singular: crontab, kind: CronTab, listKind: CronTabList, shortNames: [ct], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
    selectableFields: [{jsonPath: .spec.image}]
    additionalPrinterColumns:
    - {name: Spec, type: string, jsonPath: .spec.cronSpec}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            properties:
              cronSpec: {type: string, pattern: '^(\S+ ){4}\S+$'}
              image: {type: string, default: busybox}
              replicas: {type: integer, minimum: 0, default: 1}
              max: {type: integer}
              port: {x-kubernetes-int-or-string: true}
              hosts: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, weight: {type: integer}}}}
              anything: {type: object, x-kubernetes-preserve-unknown-fields: true}
            x-kubernetes-validations:
            - {rule: "!has(self.max) || self.replicas <= self.max", message: "replicas must not be more than max"}
            - {rule: "!has(oldSelf.cronSpec) || self.cronSpec == oldSelf.cronSpec", message: "cronSpec does not change"}
          status:
            type: object
            properties: {replicas: {type: integer}, selector: {type: string}}
  - name: v1beta1
    served: true
    storage: false
    deprecated: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

// newCustomServer returns a server that serves custom resources.
func newCustomServer(t testing.TB) *Server {
	t.Helper()
	return newCustomServerOver(t, raftstoretest.NewLocal(state.Options{}))
}

func newCustomServerOver(t testing.TB, log storage.Log, change ...func(*Config)) *Server {
	t.Helper()
	config := serverConfig(t, log)
	for _, c := range change {
		c(&config)
	}
	catalog, err := crd.New(crd.Config{
		Codecs: NewCodecs(config.Scheme), Storage: config.Storage, Models: discovery.MetadataModels,
	})
	if err != nil {
		t.Fatal(err)
	}
	config.Custom = catalog
	if config.Discovery, err = discovery.New(discovery.Config{Kinds: config.Kinds, Custom: catalog.Kinds}); err != nil {
		t.Fatal(err)
	}
	server, _ := startServer(t, config)
	return server
}

// define creates a definition and accepts its names, as the controller would.
func define(t testing.TB, server *Server, definition string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	text, err := yaml.YAMLToJSON([]byte(definition))
	if err != nil {
		t.Fatal(err)
	}
	d := mustDo[apiextensionsv1.CustomResourceDefinition](t, server, call{method: "POST", path: crdPath, body: string(text)})
	d.Status.AcceptedNames = d.Spec.Names
	for _, condition := range []apiextensionsv1.CustomResourceDefinitionConditionType{apiextensionsv1.NamesAccepted, apiextensionsv1.Established} {
		d.Status.Conditions = append(d.Status.Conditions, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: condition, Status: apiextensionsv1.ConditionTrue, LastTransitionTime: metav1.Now(),
		})
	}
	return mustDo[apiextensionsv1.CustomResourceDefinition](t, server, call{method: "PUT", path: crdPath + "/" + d.Name + "/status", body: asJSON(t, d)})
}

func asJSON(t testing.TB, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func crontab(name, spec string) string {
	return `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"` + name + `"},"spec":` + spec + `}`
}

func TestCustomResourceLifecycle(t *testing.T) {
	server := newCustomServer(t)
	define(t, server, crontabs)
	created := mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: crontabPath, body: crontab("a", `{"cronSpec":"* * * * 5","unknown":1,"anything":{"x":1}}`)})
	want := map[string]any{"cronSpec": "* * * * 5", "image": "busybox", "replicas": int64(1), "anything": map[string]any{"x": int64(1)}}
	if diff := cmp.Diff(want, created.Object["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
	if created.GetUID() == "" || created.GetGeneration() != 1 || created.GetResourceVersion() == "" || len(created.GetManagedFields()) != 1 {
		t.Errorf("metadata = %v", created.Object["metadata"])
	}
	read := mustDo[unstructured.Unstructured](t, server, call{path: crontabPath + "/a"})
	if diff := cmp.Diff(created, read); diff != "" {
		t.Errorf("read (-created +read):\n%s", diff)
	}
	patched := mustDo[unstructured.Unstructured](t, server, call{method: "PATCH", path: crontabPath + "/a", contentType: patchTypeOf["merge"], body: `{"spec":{"replicas":3},"status":{"replicas":9}}`})
	if replicas, _, _ := unstructured.NestedInt64(patched.Object, "spec", "replicas"); replicas != 3 || patched.GetGeneration() != 2 || patched.Object["status"] != nil {
		t.Errorf("patched = %v", patched.Object)
	}
	patched = mustDo[unstructured.Unstructured](
		t,
		server,
		call{method: "PATCH", path: crontabPath + "/a/status", contentType: patchTypeOf["merge"], body: `{"spec":{"replicas":4},"status":{"replicas":2,"selector":"app=a"}}`},
	)
	if replicas, _, _ := unstructured.NestedInt64(patched.Object, "spec", "replicas"); replicas != 3 || patched.GetGeneration() != 2 {
		t.Errorf("status patched = %v", patched.Object)
	}
	list := mustDo[unstructured.UnstructuredList](t, server, call{path: crontabPath})
	if len(list.Items) != 1 || list.GetKind() != "CronTabList" || list.Items[0].GetKind() != "CronTab" || list.GetResourceVersion() == "" {
		t.Errorf("list = %v", list)
	}
	mustDo[metav1.Status](t, server, call{method: "DELETE", path: crontabPath + "/a"})
	if got := (call{path: crontabPath + "/a"}).do(t, server); got.code != http.StatusNotFound || got.status.Message != `crontabs.stable.example.com "a" not found` {
		t.Errorf("after delete: %d %s", got.code, got.body)
	}
}

// addingAdmission adds fields to every custom resource.
type addingAdmission struct{}

func (addingAdmission) Handles(admission.Operation) bool { return true }

func (addingAdmission) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	u, ok := a.GetObject().(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	for _, part := range []string{"spec", "status"} {
		if err := unstructured.SetNestedField(u.Object, "x", part, "unheardOf"); err != nil {
			return err
		}
	}
	return unstructured.SetNestedField(u.Object, int64(7), "spec", "port")
}

func TestWhatAdmissionAddsIsPruned(t *testing.T) {
	server := newCustomServerOver(t, raftstoretest.NewLocal(state.Options{}), func(c *Config) { c.Admission = addingAdmission{} })
	define(t, server, crontabs)
	patch := func(subresource, body string) call {
		return call{method: "PATCH", path: crontabPath + "/a" + subresource, contentType: patchTypeOf["merge"], body: body}
	}
	for _, write := range []call{
		{method: "POST", path: crontabPath, body: crontab("a", `{}`)},
		patch("", `{"spec":{"replicas":3}}`),
		patch("/status", `{"status":{"replicas":2}}`),
	} {
		answer := mustDo[unstructured.Unstructured](t, server, write)
		port, _, _ := unstructured.NestedInt64(answer.Object, "spec", "port")
		if strings.Contains(asJSON(t, answer.Object["spec"])+asJSON(t, answer.Object["status"]), "unheardOf") || port != 7 {
			t.Errorf("%s %s: %v", write.method, write.path, answer.Object)
		}
	}
}

func TestCustomResourceRefusals(t *testing.T) {
	server := newCustomServer(t)
	define(t, server, crontabs)
	mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: crontabPath, body: crontab("a", `{"cronSpec":"* * * * 5","max":3}`)})
	for name, c := range map[string]struct {
		call
		code    int
		message string
	}{
		"schema":      {call{method: "POST", path: crontabPath, body: crontab("b", `{"cronSpec":"often"}`)}, 422, `spec.cronSpec: Invalid value: "often": spec.cronSpec in body should match`},
		"required":    {call{method: "POST", path: crontabPath, body: `{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"b"}}`}, 422, "spec: Required value"},
		"type":        {call{method: "POST", path: crontabPath, body: crontab("b", `{"replicas":"many"}`)}, 422, `spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"`},
		"CEL":         {call{method: "POST", path: crontabPath, body: crontab("b", `{"max":1,"replicas":2}`)}, 422, "replicas must not be more than max"},
		"transition":  {call{method: "PATCH", path: crontabPath + "/a", contentType: patchTypeOf["merge"], body: `{"spec":{"cronSpec":"1 * * * 5"}}`}, 422, "cronSpec does not change"},
		"list map":    {call{method: "POST", path: crontabPath, body: crontab("b", `{"hosts":[{"name":"x"},{"name":"x"}]}`)}, 422, `spec.hosts[1]: Duplicate value`},
		"strict":      {call{method: "POST", path: crontabPath + "?fieldValidation=Strict", body: crontab("b", `{"unknown":1}`)}, 400, `strict decoding error: unknown field "spec.unknown"`},
		"duplicate":   {call{method: "POST", path: crontabPath + "?fieldValidation=Strict", body: crontab("b", `{"max":1,"max":2}`)}, 400, `duplicate field "spec.max"`},
		"strategic":   {call{method: "PATCH", path: crontabPath + "/a", contentType: patchTypeOf["strategic"], body: `{}`}, 415, "application/merge-patch+json"},
		"unversioned": {call{method: "PUT", path: crontabPath + "/a", body: crontab("a", `{}`)}, 422, "metadata.resourceVersion"},
		"kind":        {call{method: "POST", path: crontabPath, body: `{"apiVersion":"stable.example.com/v1","kind":"Other","metadata":{"name":"b"}}`}, 422, `kind: Invalid value: "Other": must be CronTab`},
		"subresource": {call{path: crontabPath + "/a/log"}, 404, `crontabs.stable.example.com "a" not found`},
		"version":     {call{path: strings.Replace(crontabPath, "v1", "v2", 1)}, 404, "404 page not found"},
		"namespace":   {call{method: "POST", path: strings.Replace(crontabPath, "default", "nowhere", 1), body: crontab("b", `{}`)}, 404, `namespaces "nowhere" not found`},
		"protobuf":    {call{path: crontabPath + "/a", accept: "application/vnd.kubernetes.protobuf"}, 406, ""},
		"field":       {call{path: crontabPath + "?fieldSelector=" + url.QueryEscape("spec.max=1")}, 400, "field label not supported: spec.max"},
	} {
		got := c.do(t, server)
		if said := orDefault(got.status.Message, got.body); got.code != c.code || !strings.Contains(said, c.message) {
			t.Errorf("%s: %d %s, want %d with %q", name, got.code, got.body, c.code, c.message)
		}
	}
}

func TestCustomResourceScale(t *testing.T) {
	server := newCustomServer(t)
	define(t, server, crontabs)
	mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: crontabPath, body: crontab("a", `{"replicas":2}`)})
	mustDo[unstructured.Unstructured](t, server, call{method: "PATCH", path: crontabPath + "/a/status", contentType: patchTypeOf["merge"], body: `{"status":{"replicas":1,"selector":"app=a"}}`})
	scale := mustDo[autoscalingv1.Scale](t, server, call{path: crontabPath + "/a/scale"})
	if scale.Spec.Replicas != 2 || scale.Status.Replicas != 1 || scale.Status.Selector != "app=a" {
		t.Errorf("scale = %+v", scale)
	}
	scale.Spec.Replicas = 5
	mustDo[autoscalingv1.Scale](t, server, call{method: "PUT", path: crontabPath + "/a/scale", body: asJSON(t, scale)})
	read := mustDo[unstructured.Unstructured](t, server, call{path: crontabPath + "/a"})
	if replicas, _, _ := unstructured.NestedInt64(read.Object, "spec", "replicas"); replicas != 5 || read.GetGeneration() != 2 {
		t.Errorf("scaled = %v", read.Object)
	}
}

func TestCustomResourceSelection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // its watches end by time
		server := newCustomServer(t)
		define(t, server, crontabs)
		mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: crontabPath, body: crontab("a", `{"image":"nginx"}`)})
		mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: crontabPath, body: crontab("b", `{}`)})
		list := mustDo[unstructured.UnstructuredList](t, server, call{path: crontabPath + "?fieldSelector=spec.image%3Dbusybox"})
		if len(list.Items) != 1 || list.Items[0].GetName() != "b" {
			t.Errorf("list = %v", list)
		}
		got := call{path: crontabPath + "?watch=1&timeoutSeconds=1&fieldSelector=spec.image%3Dnginx", accept: tableType}.do(t, server)
		var frame struct{ Object metav1.Table }
		if err := json.Unmarshal([]byte(got.body), &frame); err != nil {
			t.Fatal(err, got.body)
		}
		var columns []string
		for _, c := range frame.Object.ColumnDefinitions {
			columns = append(columns, c.Name)
		}
		if diff := cmp.Diff([]string{"Name", "Spec", "Replicas"}, columns); diff != "" {
			t.Error(diff)
		}
		if rows := frame.Object.Rows; len(rows) != 1 || rows[0].Cells[0] != "a" || rows[0].Cells[2] != float64(1) {
			t.Errorf("rows = %+v", rows)
		}
	})
}

func TestCustomResourceApply(t *testing.T) {
	server := newCustomServer(t)
	define(t, server, crontabs)
	apply := func(manager, spec string, force string) answer {
		return call{method: "PATCH", path: crontabPath + "/a?fieldManager=" + manager + "&force=" + force, contentType: patchTypeOf["apply"], body: crontab("a", spec)}.do(t, server)
	}
	if got := apply("alice", `{"image":"x","hosts":[{"name":"one","weight":1}]}`, "false"); got.code != http.StatusCreated {
		t.Fatalf("%d %s", got.code, got.body)
	}
	if got := apply("bob", `{"hosts":[{"name":"two"}]}`, "false"); got.code != http.StatusOK || !strings.Contains(got.body, `"name":"one"`) {
		t.Errorf("merged by key: %d %s", got.code, got.body)
	}
	got := apply("bob", `{"image":"y"}`, "false")
	refusal{code: 409, reason: metav1.StatusReasonConflict, messageHas: `conflict with "alice": .spec.image`}.check(t, "conflict", got)
	if got := apply("bob", `{"image":"y"}`, "true"); got.code != http.StatusOK || strings.Contains(got.body, `"name":"two"`) {
		t.Errorf("forced, and the host dropped: %d %s", got.code, got.body)
	}
	refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "must be of type integer"}.check(t, "null", apply("carol", `{"max":null}`, "true"))
}

// TestCustomResourceVersions reads one object in both versions. The deprecated one says so.
func TestCustomResourceVersions(t *testing.T) {
	server := newCustomServer(t)
	d := define(t, server, crontabs)
	mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: crontabPath, body: crontab("a", `{"image":"x"}`)})
	betaPath := strings.Replace(crontabPath, "v1", "v1beta1", 1)
	got := call{path: betaPath + "/a"}.do(t, server)
	if got.code != http.StatusOK || !strings.Contains(got.body, `"apiVersion":"stable.example.com/v1beta1"`) {
		t.Errorf("%d %s", got.code, got.body)
	}
	if warning := got.header.Get("Warning"); warning != `299 - "stable.example.com/v1beta1 CronTab is deprecated; use stable.example.com/v1 CronTab"` {
		t.Errorf("warning = %s", warning)
	}
	none := call{path: betaPath + "/a/nothing"}.do(t, server)
	if none.code != http.StatusNotFound || none.header.Get("Warning") == "" {
		t.Errorf("a subresource that it has not: %d, %v", none.code, none.header)
	}
	wantDeprecated(t, server, `group="stable.example.com",removed_release="",resource="crontabs",subresource="",version="v1beta1"`)
	body := strings.Replace(crontab("b", `{"free":true,"image":"y"}`), "/v1", "/v1beta1", 1)
	mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: betaPath, body: body})
	read := mustDo[unstructured.Unstructured](t, server, call{path: crontabPath + "/b"})
	if diff := cmp.Diff(map[string]any{"image": "y", "replicas": int64(1)}, read.Object["spec"]); diff != "" {
		t.Errorf("kept as v1 (-want +got):\n%s", diff)
	}
	list := mustDo[unstructured.UnstructuredList](t, server, call{path: betaPath})
	if len(list.Items) != 2 || list.Items[1].GetAPIVersion() != "stable.example.com/v1beta1" {
		t.Errorf("list = %v", list)
	}
	d.Spec.Versions[1].Served = false
	mustDo[apiextensionsv1.CustomResourceDefinition](t, server, call{method: "PUT", path: crdPath + "/" + d.Name, body: asJSON(t, d)})
	if got := (call{path: betaPath + "/a"}).do(t, server); got.code != http.StatusNotFound {
		t.Errorf("no longer served: %d %s", got.code, got.body)
	}
}

// TestDefinitionChange: the next request sees the new schema, on reads too.
func TestDefinitionChange(t *testing.T) {
	server := newCustomServer(t)
	d := define(t, server, crontabs)
	mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: crontabPath, body: crontab("a", `{"image":"x","max":3}`)})
	props := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	delete(props.Properties, "max")
	props.XValidations = nil
	props.Properties["zone"] = apiextensionsv1.JSONSchemaProps{Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"west"`)}}
	d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = props
	mustDo[apiextensionsv1.CustomResourceDefinition](t, server, call{method: "PUT", path: crdPath + "/" + d.Name, body: asJSON(t, d)})
	read := mustDo[unstructured.Unstructured](t, server, call{path: crontabPath + "/a"})
	if diff := cmp.Diff(map[string]any{"image": "x", "replicas": int64(1), "zone": "west"}, read.Object["spec"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestTerminatingDefinition: instances can be read and deleted, not created.
func TestTerminatingDefinition(t *testing.T) {
	server := newCustomServer(t)
	d := define(t, server, crontabs)
	mustDo[unstructured.Unstructured](t, server, call{method: "POST", path: crontabPath, body: crontab("a", `{}`)})
	marked := mustDo[apiextensionsv1.CustomResourceDefinition](t, server, call{method: "DELETE", path: crdPath + "/" + d.Name})
	if marked.DeletionTimestamp == nil || len(marked.Finalizers) != 1 || marked.Finalizers[0] != apiextensionsv1.CustomResourceCleanupFinalizer {
		t.Errorf("marked = %+v", marked.ObjectMeta)
	}
	got := call{method: "POST", path: crontabPath, body: crontab("b", `{}`)}.do(t, server)
	refusal{code: 403, reason: metav1.StatusReasonForbidden, messageHas: "create not allowed while custom resource definition is terminating"}.check(t, "create", got)
	mustDo[unstructured.Unstructured](t, server, call{path: crontabPath + "/a"})
	mustDo[metav1.Status](t, server, call{method: "DELETE", path: crontabPath + "/a"})
	mustDo[apiextensionsv1.CustomResourceDefinition](t, server, call{method: "PATCH", path: crdPath + "/" + d.Name, contentType: patchTypeOf["merge"], body: `{"metadata":{"finalizers":null}}`})
	if got := (call{path: crontabPath}).do(t, server); got.code != http.StatusNotFound {
		t.Errorf("after the definition: %d %s", got.code, got.body)
	}
}
