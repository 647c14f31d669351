package apiserver

import (
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// doubling is a patch of about 40 bytes for each of its copies; the value doubles with each.
func doubling(copies int) string {
	return `[{"op":"add","path":"/x","value":["y"]}` + strings.Repeat(`,{"op":"copy","from":"/x","path":"/x/-"}`, copies) + `]`
}

// TestPatchCopiesAreBounded: a small JSON patch must not make a large object, whatever it patches.
func TestPatchCopiesAreBounded(t *testing.T) {
	server := newCustomServer(t)
	define(t, server, crontabs)
	for _, c := range []call{
		{path: cmPath, body: cmBody("a")}, {path: podPath, body: podBody("p")}, {path: depPath, body: depBody("d")},
		{path: crontabPath, body: crontab("a", `{"replicas":2}`)},
	} {
		c.method = http.MethodPost
		mustDo[unstructured.Unstructured](t, server, c)
	}
	for _, path := range []string{
		cmPath + "/a", podPath + "/p/status", depPath + "/d/scale", depPath + "/d/status",
		crontabPath + "/a", crontabPath + "/a/status", crontabPath + "/a/scale",
	} {
		got := call{method: http.MethodPatch, path: path, contentType: patchTypeOf["json"], body: doubling(20)}.do(t, server)
		// Without the limit the copies are made, megabytes of them, and then dropped as an unknown field: 200.
		if got.code != http.StatusUnprocessableEntity || got.status.Reason != metav1.StatusReasonInvalid || len(got.body) > 1000 {
			t.Errorf("%s: %d, %d bytes: %s", path, got.code, len(got.body), firstBytes(got.body))
		}
	}
	small := call{method: http.MethodPatch, path: cmPath + "/a", contentType: patchTypeOf["json"], body: `[{"op":"copy","from":"/data","path":"/binaryData"},{"op":"remove","path":"/binaryData"}]`}
	if got := small.do(t, server); got.code != http.StatusOK {
		t.Errorf("a small copy: %d %s", got.code, firstBytes(got.body))
	}
}
