package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/controller/openapi/builder"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// TestCustomResourcesAreDiscovered: with the definition, and no longer than it.
func TestCustomResourcesAreDiscovered(t *testing.T) {
	server := newCustomServer(t)
	group := call{path: "/apis/stable.example.com/v1"}
	if got := group.do(t, server); got.code != http.StatusNotFound {
		t.Fatalf("before: %d", got.code)
	}
	d := define(t, server, crontabs)
	list := mustDo[metav1.APIResourceList](t, server, group)
	if diff := cmp.Diff([]string{
		"crontabs CronTab [delete deletecollection get list patch create update watch]",
		"crontabs/status CronTab [get patch update]", "crontabs/scale Scale [get patch update]",
	}, described(list)); diff != "" {
		t.Error(diff)
	}
	for version, list := range map[string]*metav1.APIResourceList{
		"v1": list, "v1beta1": mustDo[metav1.APIResourceList](t, server, call{path: "/apis/stable.example.com/v1beta1"}),
	} {
		if got, want := list.APIResources[0].StorageVersionHash, discovery.StorageVersionHash("stable.example.com", "v1", "CronTab"); got != want {
			t.Errorf("%s: storage version %q, want %q", version, got, want)
		}
	}
	aggregated := "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	got := call{path: "/apis", accept: aggregated}.do(t, server)
	if !strings.Contains(got.body, `"shortNames":["ct"]`) || !strings.Contains(got.body, `"categories":["all"]`) {
		t.Errorf("aggregated: %s", got.body)
	}
	d.Spec.Versions[1].Served = false
	mustDo[apiextensionsv1.CustomResourceDefinition](t, server, call{method: "PUT", path: crdPath + "/" + d.Name, body: asJSON(t, d)})
	if later := (call{path: "/apis", accept: aggregated}).do(t, server); later.header.Get("ETag") == got.header.Get("ETag") || strings.Contains(later.body, "v1beta1\",\"kind\":\"CronTab") {
		t.Error("a version that is served no more is still offered")
	}
}

// described are the resources of a version, with their verbs in the order in which they are told.
func described(list *metav1.APIResourceList) (lines []string) {
	for _, r := range list.APIResources {
		lines = append(lines, fmt.Sprint(r.Name, " ", r.Kind, " ", r.Verbs))
	}
	return lines
}

// TestDiscoveryOfWhatIsDeleted: of a definition that is being deleted no verb is told that would bring objects or change them.
func TestDiscoveryOfWhatIsDeleted(t *testing.T) {
	server := newCustomServer(t)
	d := define(t, server, crontabs)
	mustDo[apiextensionsv1.CustomResourceDefinition](t, server, call{method: "DELETE", path: crdPath + "/" + d.Name})
	list := mustDo[metav1.APIResourceList](t, server, call{path: "/apis/stable.example.com/v1"})
	if diff := cmp.Diff("crontabs CronTab [delete deletecollection get list watch]", described(list)[0]); diff != "" {
		t.Error(diff)
	}
}

func TestCustomResourceOpenAPI(t *testing.T) {
	server := newCustomServer(t)
	d := define(t, server, crontabs)
	path := call{path: "/openapi/v3/apis/stable.example.com/v1"}
	got := path.do(t, server)
	var v3 spec3.OpenAPI
	if err := json.Unmarshal([]byte(got.body), &v3); err != nil {
		t.Fatal(err)
	}
	const name = "com.example.stable.v1.CronTab"
	model := v3.Components.Schemas[name]
	if model == nil || model.Properties["spec"].Properties["replicas"].Default != 1.0 || len(model.Properties["metadata"].AllOf) != 1 {
		t.Fatalf("model = %+v", model)
	}
	if v3.Components.Schemas["io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"] == nil || v3.Components.Schemas[name+"List"] == nil {
		t.Error("what it refers to is missing")
	}
	patch := v3.Paths.Paths[crontabPathTemplate+"/{name}"]
	if patch == nil || patch.Patch == nil || !strings.Contains(asJSON(t, patch.Patch), `"fieldValidation"`) {
		t.Error("kubectl looks for fieldValidation at PATCH")
	}
	if all := asJSON(t, v3.Paths); strings.Contains(all, "strategic") || strings.Contains(all, "protobuf") || !strings.Contains(all, "merge-patch") {
		t.Error("kubectl applies by a strategic merge where that is offered, and without a Go type there is none")
	}
	var v2 spec.Swagger
	if err := json.Unmarshal([]byte(call{path: "/openapi/v2"}.do(t, server).body), &v2); err != nil {
		t.Fatal(err)
	}
	if all := asJSON(t, v2.Paths.Paths[crontabPathTemplate+"/{name}"]); strings.Contains(all, "strategic") || !strings.Contains(all, "merge-patch") {
		t.Errorf("v2 offers %s", all)
	}
	if port := v2.Definitions[name].Properties["spec"].Properties["port"]; len(port.Type) != 0 || v2.Definitions[name].Properties["spec"].Properties["cronSpec"].Pattern == "" {
		t.Errorf("v2 model = %+v", v2.Definitions[name])
	}
	if free := v2.Definitions["com.example.stable.v1beta1.CronTab"]; len(free.Properties) != 0 {
		t.Errorf("kubectl would refuse unknown fields: %+v", free.Properties)
	}
	d.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "changed"
	mustDo[apiextensionsv1.CustomResourceDefinition](t, server, call{method: "PUT", path: crdPath + "/" + d.Name, body: asJSON(t, d)})
	if later := path.do(t, server); later.header.Get("ETag") == got.header.Get("ETag") || !strings.Contains(later.body, "changed") {
		t.Error("the document did not change with the schema")
	}
	apps := call{path: "/openapi/v3/apis/apps/v1"}.do(t, server).header.Get("ETag")
	mustDo[apiextensionsv1.CustomResourceDefinition](t, server, call{method: "DELETE", path: crdPath + "/" + d.Name})
	if now := (call{path: "/openapi/v3/apis/apps/v1"}).do(t, server).header.Get("ETag"); now != apps {
		t.Error("documents of other groups changed too")
	}
}

const crontabPathTemplate = "/apis/stable.example.com/v1/namespaces/{namespace}/crontabs"

// TestCustomResourceOperations: they are described as upstream's builder describes them.
func TestCustomResourceOperations(t *testing.T) {
	server := newCustomServer(t)
	d := define(t, server, crontabs)
	upstream, err := builder.BuildOpenAPIV3(d, "v1", builder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ours spec3.OpenAPI
	if err := json.Unmarshal([]byte(call{path: "/openapi/v3/apis/stable.example.com/v1"}.do(t, server).body), &ours); err != nil {
		t.Fatal(err)
	}
	for path := range ours.Paths.Paths {
		if upstream.Paths.Paths[path] == nil { // of the group
			delete(ours.Paths.Paths, path)
		}
	}
	if diff := cmp.Diff(plainPaths(t, upstream.Paths), plainPaths(t, ours.Paths)); diff != "" {
		t.Errorf("(-upstream +ours)\n%s", diff)
	}
}

// plainPaths are paths as JSON, with parameters by their names: their order means nothing.
func plainPaths(t *testing.T, paths *spec3.Paths) (plain any) {
	t.Helper()
	if err := json.Unmarshal([]byte(asJSON(t, paths)), &plain); err != nil {
		t.Fatal(err)
	}
	sortParameters(plain)
	return plain
}

func sortParameters(value any) {
	switch value := value.(type) {
	case map[string]any:
		if list, ok := value["parameters"].([]any); ok {
			slices.SortFunc(list, func(a, b any) int {
				return strings.Compare(fmt.Sprint(a.(map[string]any)["name"]), fmt.Sprint(b.(map[string]any)["name"]))
			})
		}
		for _, child := range value {
			sortParameters(child)
		}
	case []any:
		for _, child := range value {
			sortParameters(child)
		}
	}
}
