package discovery_test

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientdiscovery "k8s.io/client-go/discovery"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
)

var update = flag.Bool("update", false, "write the golden files")

const acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

func get(t *testing.T, handler http.Handler, path string, header ...string) *http.Response {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, path, nil)
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder.Result()
}

func body(t *testing.T, response *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func golden(t *testing.T, name string, got any) {
	t.Helper()
	text, err := json.MarshalIndent(got, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.TrimSpace(string(want)), string(text)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestClientsSeeTheSameEitherWay(t *testing.T) {
	client := clientdiscovery.NewDiscoveryClientForConfigOrDie(newServer(t, newHandler(t, discovery.Config{})))
	lists := map[string][]*metav1.APIResourceList{}
	for form, asked := range map[string]clientdiscovery.DiscoveryInterface{"aggregated": client, "legacy": client.WithLegacy()} {
		groups, resources, err := asked.ServerGroupsAndResources()
		if err != nil {
			t.Fatalf("%s: %v", form, err)
		}
		if got := len(groups); got != 3 {
			t.Errorf("%s: %d groups, want 3", form, got)
		}
		lists[form] = normalize(resources)
	}
	golden(t, "resources.json", lists["legacy"])
	if diff := cmp.Diff(lists["legacy"], lists["aggregated"]); diff != "" {
		t.Errorf("the aggregated form differs from the legacy one:\n%s", diff)
	}
}

// normalize takes away what client-go makes of only one of the forms.
func normalize(lists []*metav1.APIResourceList) []*metav1.APIResourceList {
	for _, list := range lists {
		list.TypeMeta = metav1.TypeMeta{}
		for i := range list.APIResources {
			r := &list.APIResources[i]
			r.StorageVersionHash = "" // the aggregated form has none
			if gv := (metav1.GroupVersion{Group: r.Group, Version: r.Version}); gv.String() == list.GroupVersion {
				r.Group, r.Version = "", ""
			}
			if strings.Contains(r.Name, "/") {
				r.SingularName = ""
			}
		}
	}
	slices.SortFunc(lists, func(a, b *metav1.APIResourceList) int { return strings.Compare(a.GroupVersion, b.GroupVersion) })
	return lists
}

func TestAggregated(t *testing.T) {
	handler := newHandler(t, discovery.Config{})
	response := get(t, handler, "/apis", "Accept", acceptAggregated)
	if got, want := response.Header.Get("Content-Type"), "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"; got != want {
		t.Errorf("content type %q, want %q", got, want)
	}
	var list apidiscoveryv2.APIGroupDiscoveryList
	if err := json.Unmarshal([]byte(body(t, response)), &list); err != nil {
		t.Fatal(err)
	}
	if list.Kind != "APIGroupDiscoveryList" || list.APIVersion != "apidiscovery.k8s.io/v2" {
		t.Errorf("type %s %s", list.APIVersion, list.Kind)
	}
	golden(t, "aggregated.json", list)

	etag := response.Header.Get("ETag")
	if again := get(t, handler, "/apis", "Accept", acceptAggregated, "If-None-Match", etag); again.StatusCode != http.StatusNotModified {
		t.Errorf("with the ETag: %s, want 304", again.Status)
	}
	if other := get(t, handler, "/api", "Accept", acceptAggregated).Header.Get("ETag"); other == etag || other == "" {
		t.Errorf("/api and /apis have the ETags %s and %s", other, etag)
	}
}

func TestAggregatedProtobuf(t *testing.T) {
	response := get(t, newHandler(t, discovery.Config{}), "/api", "Accept",
		"application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
	if got := response.Header.Get("Content-Type"); !strings.HasPrefix(got, "application/vnd.kubernetes.protobuf;g=apidiscovery") {
		t.Errorf("content type %q", got)
	}
	var envelope runtime.Unknown
	var list apidiscoveryv2.APIGroupDiscoveryList
	text := strings.TrimPrefix(body(t, response), "k8s\x00")
	if err := envelope.Unmarshal([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := list.Unmarshal(envelope.Raw); err != nil || len(list.Items) != 1 || list.Items[0].Versions[0].Version != "v1" {
		t.Errorf("%v, %v", list, err)
	}
}

func TestSetKinds(t *testing.T) {
	handler := newHandler(t, discovery.Config{})
	before := get(t, handler, "/apis", "Accept", acceptAggregated).Header.Get("ETag")
	v3Before := get(t, handler, "/openapi/v3").Header.Get("ETag")
	if err := handler.SetKinds(testKinds()[:3]); err != nil {
		t.Fatal(err)
	}
	if after := get(t, handler, "/apis", "Accept", acceptAggregated).Header.Get("ETag"); after == before {
		t.Error("the ETag of /apis is unchanged after a group has gone")
	}
	if after := get(t, handler, "/openapi/v3").Header.Get("ETag"); after == v3Before {
		t.Error("the ETag of /openapi/v3 is unchanged after a group has gone")
	}
	if got := get(t, handler, "/apis/coordination.k8s.io/v1").StatusCode; got != http.StatusNotFound {
		t.Errorf("the group that has gone: %d, want 404", got)
	}
	if err := handler.SetKinds(nil); !errors.Is(err, discovery.ErrNoKinds) {
		t.Errorf("no kinds: %v", err)
	}
}

func TestStatusCodes(t *testing.T) {
	handler := newHandler(t, discovery.Config{})
	for path, want := range map[string]int{
		"/": 200, "/api": 200, "/api/": 200, "/apis": 200, "/apis/apps": 200, "/apis/apps/v1": 200, "/apis/apps/v1/": 200,
		"/apis/apps/v2": 404, "/apis/none": 404, "/api/v2": 404, "/version": 200, "/metrics": 404,
		"/openapi/v3/apis/none/v1": 404, "/openapi": 404, "/healthz/none": 404, "/other": 404,
	} {
		if got := get(t, handler, path).StatusCode; got != want {
			t.Errorf("GET %s: %d, want %d", path, got, want)
		}
	}
	for path, want := range map[string]string{"/api/v2": "application/json", "/apis/apps/v2": "application/json", "/apis/none": "text/plain; charset=utf-8"} {
		if got := get(t, handler, path).Header.Get("Content-Type"); got != want {
			t.Errorf("GET %s is answered in %s, want %s as upstream", path, got, want)
		}
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/version", nil))
	if recorder.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST /version: %d, want 405", recorder.Code)
	}
	if got := get(t, handler, "/apis/apps/v1", "Accept", "text/html").StatusCode; got != http.StatusNotAcceptable {
		t.Errorf("text/html: %d, want 406", got)
	}
}

func TestHandles(t *testing.T) {
	for path, want := range map[string]bool{
		"/": true, "/api": true, "/api/v1": true, "/api/v1/pods": false, "/apis": true, "/apis/apps": true, "/apis/apps/v1/": true,
		"/apis/apps/v1/deployments": false, "/openapi/v3/api/v1": true, "/readyz/ping": true, "/version": true, "/versions": false,
		"/metrics": true, "/setpoint.v1.JoinService/Join": false,
	} {
		if got := discovery.Handles(path); got != want {
			t.Errorf("Handles(%q) = %v", path, got)
		}
	}
}
