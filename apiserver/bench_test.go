package apiserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
)

const (
	jsonType     = runtime.ContentTypeJSON
	protobufType = runtime.ContentTypeProtobuf
)

// exchange is one request through the in-process transport, the answer read.
func exchange(b *testing.B, transport http.RoundTripper, c call) []byte {
	r, err := http.NewRequestWithContext(b.Context(), orDefault(c.method, http.MethodGet), "https://in-process"+c.path, strings.NewReader(c.body))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Accept", orDefault(c.accept, "application/json"))
	r.Header.Set("Content-Type", orDefault(c.contentType, "application/json"))
	r.Header.Set("User-Agent", "bench/v1")
	response, err := transport.RoundTrip(r)
	if err != nil {
		b.Fatal(err)
	}
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode >= 300 {
		b.Fatal(response.StatusCode, err, string(body))
	}
	response.Body.Close()
	return body
}

// benchObjects are what a write costs by: a small object without defaults, and a
// deep one with them.
func benchObjects(b *testing.B) map[string]struct {
	path string
	obj  func(name string) runtime.Object
} {
	pod := &corev1.Pod{}
	if err := json.Unmarshal([]byte(podBody("p")), pod); err != nil {
		b.Fatal(err)
	}
	return map[string]struct {
		path string
		obj  func(name string) runtime.Object
	}{
		"configmap": {cmPath, func(name string) runtime.Object {
			return configMap(name, map[string]string{"payload": strings.Repeat("x", 1024)})
		}},
		"pod": {podPath, func(name string) runtime.Object {
			p := pod.DeepCopy()
			p.Name = name
			return p
		}},
	}
}

// eachEncoding runs a benchmark for each object in JSON and protobuf. encode gives
// an object's body, as a client would send it.
func eachEncoding(b *testing.B, run func(b *testing.B, transport http.RoundTripper, path, mediaType string, obj func(name string) runtime.Object, encode func(runtime.Object) string)) {
	server, _ := newServer(b)
	transport := server.Transport(Caller{User: admin})
	codecs := NewCodecs(kinds.NewScheme())
	n := 0
	for kind, o := range benchObjects(b) {
		for _, info := range codecs.SupportedMediaTypes() {
			if info.MediaType != jsonType && info.MediaType != protobufType {
				continue
			}
			encoder := codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
			b.Run(kind+"/"+info.MediaType[strings.LastIndexAny(info.MediaType, "./")+1:], func(b *testing.B) {
				n++
				prefix := fmt.Sprint("r", n, "-") // names are new in each run
				b.ReportAllocs()
				run(b, transport, o.path, info.MediaType, func(name string) runtime.Object { return o.obj(prefix + name) }, func(obj runtime.Object) string {
					var body bytes.Buffer
					if err := encoder.Encode(obj, &body); err != nil {
						b.Fatal(err)
					}
					return body.String()
				})
			})
		}
	}
}

// nameDigits keeps the size of bodies the same for every name.
const nameDigits = "%08d"

func BenchmarkCreate(b *testing.B) {
	eachEncoding(b, func(b *testing.B, transport http.RoundTripper, path, mediaType string, obj func(string) runtime.Object, encode func(runtime.Object) string) {
		marker := fmt.Sprintf(nameDigits, 0)
		body := encode(obj(marker))
		for i := 0; b.Loop(); i++ {
			named := strings.Replace(body, marker, fmt.Sprintf(nameDigits, i), 1)
			exchange(b, transport, call{method: "POST", path: path, body: named, contentType: mediaType, accept: mediaType})
		}
	})
}

func BenchmarkUpdate(b *testing.B) {
	decoder := NewCodecs(kinds.NewScheme()).UniversalDeserializer()
	eachEncoding(b, func(b *testing.B, transport http.RoundTripper, path, mediaType string, obj func(string) runtime.Object, encode func(runtime.Object) string) {
		marker := fmt.Sprintf(nameDigits, 0)
		o := obj("a").(metav1.Object)
		o.SetAnnotations(map[string]string{"round": marker})
		created := exchange(b, transport, call{method: "POST", path: path, body: encode(o.(runtime.Object)), contentType: mediaType, accept: mediaType})
		stored, _, err := decoder.Decode(created, nil, nil)
		if err != nil {
			b.Fatal(err)
		}
		stored.(metav1.Object).SetResourceVersion("")
		stored.(metav1.Object).SetManagedFields(nil)
		body := encode(stored)
		for i := 0; b.Loop(); i++ {
			changed := strings.Replace(body, marker, fmt.Sprintf(nameDigits, i), 1)
			exchange(b, transport, call{method: "PUT", path: path + "/" + o.GetName(), body: changed, contentType: mediaType, accept: mediaType})
		}
	})
}

func BenchmarkGetConfigMap(b *testing.B) {
	server, _ := newServer(b)
	transport := server.Transport(Caller{User: admin})
	exchange(b, transport, call{method: "POST", path: cmPath, body: cmBody("a")})
	b.ReportAllocs()
	for b.Loop() {
		exchange(b, transport, call{path: cmPath + "/a"})
	}
}

func BenchmarkListPods(b *testing.B) {
	server, _ := newServer(b)
	transport := server.Transport(Caller{User: admin})
	for i := range 1000 {
		exchange(b, transport, call{method: "POST", path: podPath, body: podBody(fmt.Sprint("p", i))})
	}
	for _, accept := range []string{jsonType, protobufType} {
		b.Run(accept, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				exchange(b, transport, call{path: podPath + "?resourceVersion=0", accept: accept})
			}
		})
	}
}

func BenchmarkPodStatusPatch(b *testing.B) {
	server, _ := newServer(b)
	transport := server.Transport(Caller{User: admin})
	exchange(b, transport, call{method: "POST", path: podPath, body: podBody("p")})
	for _, accept := range []string{jsonType, protobufType} {
		b.Run(accept, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				body := fmt.Sprintf(`{"status":{"phase":"Running","message":"%d"}}`, i)
				exchange(b, transport, call{method: "PATCH", path: podPath + "/p/status", contentType: patchTypeOf["strategic"], accept: accept, body: body})
			}
		})
	}
}
