package loops

import (
	"bytes"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
)

func request(t *testing.T, method, path string, body []byte) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://in-process"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// encoded is an object as client-go sends it.
func encoded(t *testing.T, inJSON bool, change func(*corev1.ConfigMap)) []byte {
	t.Helper()
	object := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", ResourceVersion: "5"}, Data: map[string]string{"a": "b"},
	}
	if change != nil {
		change(object)
	}
	var encoder runtime.Encoder = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	if inJSON {
		encoder = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})
	}
	var body bytes.Buffer
	if err := encoder.Encode(object, &body); err != nil {
		t.Fatal(err)
	}
	return body.Bytes()
}

func TestWhatIsWritten(t *testing.T) {
	named, generated := encoded(t, false, nil), encoded(t, false, func(c *corev1.ConfigMap) { c.Name, c.GenerateName = "", "c-" })
	for _, c := range []struct {
		method, path string
		body         []byte
		want         string
	}{
		{"PUT", "/api/v1/namespaces/n/configmaps/c", nil, "configmaps n/c"},
		{"PUT", "/apis/apps/v1/namespaces/n/deployments/d/status", nil, "deployments/status n/d"},
		{"PATCH", "/api/v1/nodes/x", nil, "nodes x"},
		{"PUT", "/api/v1/namespaces/n", nil, "namespaces n"},
		{"PUT", "/api/v1/namespaces/n/finalize", nil, "namespaces/finalize n"},
		{"POST", "/api/v1/namespaces/n/configmaps", named, "configmaps n/c"},
		{"POST", "/api/v1/namespaces/n/configmaps", encoded(t, true, nil), "configmaps n/c"},
		{"POST", "/api/v1/namespaces/n/configmaps", generated, ""},
		{"POST", "/version", nil, ""},
	} {
		if got := written(request(t, c.method, c.path, c.body), c.body); got != c.want {
			t.Errorf("%s %s writes %q, want %q", c.method, c.path, got, c.want)
		}
	}
}

func TestTheSameIsSaid(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*corev1.ConfigMap)
		same   bool
	}{
		"another version":    {func(c *corev1.ConfigMap) { c.ResourceVersion, c.Generation = "77", 3 }, true},
		"another manager":    {func(c *corev1.ConfigMap) { c.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}} }, true},
		"other data":         {func(c *corev1.ConfigMap) { c.Data["a"] = "c" }, false},
		"another annotation": {func(c *corev1.ConfigMap) { c.Annotations = map[string]string{"a": "b"} }, false},
	} {
		for _, inJSON := range []bool{false, true} {
			first := said("PUT", "application/json", encoded(t, inJSON, nil))
			second := said("PUT", "application/json", encoded(t, inJSON, c.change))
			if (first == second) != c.same {
				t.Errorf("%s, in JSON %t: the same %t, want %t", name, inJSON, first == second, c.same)
			}
		}
	}
	if body := encoded(t, false, nil); said("PUT", "", body) == said("POST", "", body) {
		t.Error("a PUT and a POST say the same")
	}
}

func FuzzSaid(f *testing.F) {
	f.Add([]byte("k8s\x00\x12\x04\x0a\x02\x0a\x00"))
	f.Fuzz(func(_ *testing.T, body []byte) {
		said("PUT", "application/json", body)
		nameIn(body)
	})
}
