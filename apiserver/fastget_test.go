package apiserver

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// TestFastGetsAreUpstreamsAnswers: with a parameter that changes nothing a request
// goes to upstream's handler. Status, headers and body are the same without it.
func TestFastGetsAreUpstreamsAnswers(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
	mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("p")})
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: strings.Replace(cmBody("large"), `"v"`, `"`+strings.Repeat("<", 130<<10)+`"`, 1)})
	for _, path := range []string{cmPath + "/a", cmPath + "/large", cmPath + "/none", podPath + "/p", "/api/v1/namespaces/default"} {
		for _, accept := range []string{
			"application/json", "application/json, */*", "application/vnd.kubernetes.protobuf",
			"application/vnd.kubernetes.protobuf,application/json", "application/yaml", "*/*", tableType,
		} {
			for _, method := range []string{http.MethodGet, http.MethodHead} {
				c := call{method: method, path: path, accept: accept, acceptEncoding: "gzip"}
				fast := c.do(t, server)
				c.path += "?resourceVersion="
				slow := c.do(t, server)
				for _, header := range []http.Header{fast.header, slow.header} {
					header.Del("Audit-Id") // its own for each request
				}
				if fast.code != slow.code || !cmp.Equal(fast.header, slow.header) || fast.body != slow.body && accept != tableType {
					t.Errorf("%s %s as %s: %d %v, upstream %d %v", method, path, accept, fast.code, fast.header, slow.code, slow.header)
				}
			}
		}
	}
}
