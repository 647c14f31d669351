package discovery_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
)

func TestOpenAPIV3ThroughClient(t *testing.T) {
	client := clientdiscovery.NewDiscoveryClientForConfigOrDie(newServer(t, newHandler(t, discovery.Config{})))
	document, err := openapi3.NewRoot(client.OpenAPIV3()).GVSpec(schema.GroupVersion{Group: "apps", Version: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	path := document.Paths.Paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
	if path == nil || path.Get == nil || path.Put == nil || path.Patch == nil || path.Delete == nil || path.Post != nil {
		t.Fatalf("operations of one deployment: %+v", path)
	}
	if got := path.Get.OperationId; got != "readAppsV1NamespacedDeployment" {
		t.Errorf("operation id %q", got)
	}
	for _, want := range []string{"dryRun", "fieldManager", "fieldValidation", "force", "namespace", "name", "pretty"} {
		if !slices.ContainsFunc(slices.Concat(path.Parameters, path.Patch.Parameters), func(p *spec3.Parameter) bool { return p.Name == want }) {
			t.Errorf("PATCH has no parameter %s", want)
		}
	}
	var kind map[string]string
	if err := path.Patch.Extensions.GetObject("x-kubernetes-group-version-kind", &kind); err != nil || kind["kind"] != "Deployment" {
		t.Errorf("kind of PATCH: %v, %v", kind, err)
	}
	if scale := document.Paths.Paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale"]; scale == nil || scale.Patch == nil {
		t.Error("no PATCH of scale")
	}
}

// TestReferences follows every reference of every document.
func TestReferences(t *testing.T) {
	handler := newHandler(t, discovery.Config{})
	for _, path := range []string{"/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1", "/openapi/v3/apis/coordination.k8s.io/v1", "/openapi/v2"} {
		var document any
		text := body(t, get(t, handler, path))
		if err := json.Unmarshal([]byte(text), &document); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if strings.Contains(text, `"operationId":""`) || strings.Contains(text, `schemas/"`) || strings.Contains(text, `definitions/"`) {
			t.Errorf("%s: an empty operation id or reference", path)
		}
		checkReferences(t, path, document, document)
	}
}

func checkReferences(t *testing.T, path string, root, value any) {
	switch value := value.(type) {
	case map[string]any:
		if reference, ok := value["$ref"].(string); ok && lookup(root, reference) == nil {
			t.Errorf("%s: nothing at %s", path, reference)
		}
		for _, child := range value {
			checkReferences(t, path, root, child)
		}
	case []any:
		for _, child := range value {
			checkReferences(t, path, root, child)
		}
	}
}

func lookup(value any, reference string) any {
	for element := range strings.SplitSeq(strings.TrimPrefix(reference, "#/"), "/") {
		object, _ := value.(map[string]any)
		value = object[element]
	}
	return value
}

// TestOperationIDs: client generators make one function of each.
func TestOperationIDs(t *testing.T) {
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(body(t, get(t, newHandler(t, discovery.Config{}), "/openapi/v2"))), &document); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, operations := range document.Paths {
		delete(operations, "parameters")
		for _, op := range operations {
			var described struct{ OperationID string }
			if err := json.Unmarshal(op, &described); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, described.OperationID)
		}
	}
	slices.Sort(ids)
	golden(t, "operations.json", ids)
	if unique := slices.Compact(slices.Clone(ids)); len(unique) != len(ids) {
		t.Errorf("%d operations with %d ids", len(ids), len(unique))
	}
}

func TestOpenAPIV3Index(t *testing.T) {
	handler := newHandler(t, discovery.Config{})
	response := get(t, handler, "/openapi/v3")
	var index handler3.OpenAPIV3Discovery
	if err := json.Unmarshal([]byte(body(t, response)), &index); err != nil {
		t.Fatal(err)
	}
	address := index.Paths["apis/apps/v1"].ServerRelativeURL
	exact := get(t, handler, address)
	if exact.StatusCode != http.StatusOK || !strings.Contains(exact.Header.Get("Cache-Control"), "immutable") {
		t.Errorf("%s: %s, %v", address, exact.Status, exact.Header)
	}
	if stale := get(t, handler, "/openapi/v3/apis/apps/v1?hash=old"); stale.StatusCode != http.StatusMovedPermanently || stale.Header.Get("Location") != address {
		t.Errorf("an old hash: %s to %s", stale.Status, stale.Header.Get("Location"))
	}
	if same := get(t, handler, address, "If-None-Match", exact.Header.Get("ETag")); same.StatusCode != http.StatusNotModified {
		t.Errorf("with the ETag: %s, want 304", same.Status)
	}
	if same := get(t, handler, "/openapi/v3", "If-None-Match", response.Header.Get("ETag")); same.StatusCode != http.StatusNotModified {
		t.Errorf("index with the ETag: %s, want 304", same.Status)
	}
}

func TestOpenAPIForms(t *testing.T) {
	handler := newHandler(t, discovery.Config{})
	const v2, v3 = "application/com.github.proto-openapi.spec.v2", "application/com.github.proto-openapi.spec.v3"
	for _, c := range []struct {
		path, accept, want string
		code               int
	}{
		{"/openapi/v2", "", "application/json", 200},
		{"/openapi/v2", v2 + "@v1.0+protobuf", v2 + ".v1.0+protobuf", 200},
		{"/openapi/v2", v2 + ".v1.0+protobuf, application/json", v2 + ".v1.0+protobuf", 200},
		{"/openapi/v3/apis/coordination.k8s.io/v1", v3 + ".v1.0+protobuf", v3 + ".v1.0+protobuf", 200},
		{"/openapi/v3/apis/coordination.k8s.io/v1", "*/*", "application/json", 200},
		{"/openapi/v3/api/v1", "text/html", "text/plain; charset=utf-8", 406},
	} {
		response := get(t, handler, c.path, "Accept", c.accept)
		if response.StatusCode != c.code || response.Header.Get("Content-Type") != c.want {
			t.Errorf("%s as %q: %s, %s", c.path, c.accept, response.Status, response.Header.Get("Content-Type"))
		}
	}
	if packed := get(t, handler, "/openapi/v2", "Accept-Encoding", "gzip"); packed.Header.Get("Content-Encoding") != "gzip" {
		t.Errorf("gzip was offered and not used: %v", packed.Header)
	}
}

// TestOldClientsReadV2 covers what kubectl's client-side validation reads.
func TestOldClientsReadV2(t *testing.T) {
	client := clientdiscovery.NewDiscoveryClientForConfigOrDie(newServer(t, newHandler(t, discovery.Config{})))
	document, err := client.OpenAPISchema()
	if err != nil {
		t.Fatal(err)
	}
	for _, named := range document.GetDefinitions().GetAdditionalProperties() {
		if named.GetName() == "io.k8s.apimachinery.pkg.util.intstr.IntOrString" {
			if got := named.GetValue().GetType().GetValue(); len(got) != 1 || got[0] != "string" {
				t.Errorf("IntOrString is %v in v2, want a string", got)
			}
			return
		}
	}
	t.Error("IntOrString is not defined")
}
