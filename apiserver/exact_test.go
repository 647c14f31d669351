package apiserver

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestExactGet: one object at a revision, in the words and with the refusals of a LIST.
func TestExactGet(t *testing.T) {
	server, _ := newServer(t)
	first := mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
	patch := call{method: "PATCH", path: cmPath + "/a", body: `{"data":{"k":"new"}}`, contentType: "application/merge-patch+json"}
	mustDo[corev1.ConfigMap](t, server, patch)
	at := "?resourceVersion=" + first.ResourceVersion
	if got := mustDo[corev1.ConfigMap](t, server, call{path: cmPath + "/a" + at + "&resourceVersionMatch=Exact"}); got.Data["k"] == "new" {
		t.Errorf("the present for the past: %v", got.Data)
	}
	for query, want := range map[string]string{
		at + "&resourceVersionMatch=exact":                "supported values",
		"?resourceVersionMatch=Exact":                     "forbidden unless resourceVersion is provided",
		"?resourceVersion=0&resourceVersionMatch=Exact":   `forbidden for resourceVersion "0"`,
		at + "&resourceVersionMatch=Foo&fieldManager=%zz": "supported values",
	} {
		if got := (call{path: cmPath + "/a" + query}).do(t, server); got.code != 422 || !strings.Contains(got.status.Message, want) {
			t.Errorf("%s: %d %s", query, got.code, got.body)
		}
	}
}
