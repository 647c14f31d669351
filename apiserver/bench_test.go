package apiserver

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// exchange is one request through the in-process transport, the answer read.
func exchange(b *testing.B, transport http.RoundTripper, c call) {
	r, err := http.NewRequestWithContext(b.Context(), orDefault(c.method, http.MethodGet), "https://in-process"+c.path, strings.NewReader(c.body))
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Accept", orDefault(c.accept, "application/json"))
	r.Header.Set("Content-Type", orDefault(c.contentType, "application/json"))
	response, err := transport.RoundTrip(r)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode >= 300 {
		b.Fatal(response.StatusCode, err)
	}
	response.Body.Close()
}

func BenchmarkCreateConfigMap(b *testing.B) {
	server, _ := newServer(b)
	transport := server.Transport(Caller{User: admin})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		exchange(b, transport, call{method: "POST", path: cmPath, body: cmBody(fmt.Sprint("c", i))})
	}
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
	for _, accept := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
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
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		body := fmt.Sprintf(`{"status":{"phase":"Running","message":"%d"}}`, i)
		exchange(b, transport, call{method: "PATCH", path: podPath + "/p/status", contentType: patchTypeOf["strategic"], body: body})
	}
}
