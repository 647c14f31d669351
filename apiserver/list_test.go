package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// TestListVersions is the matrix of resourceVersion, match, limit and continue.
// The namespace is revision 1; a, b, c are 2, 3, 4; 5 deletes b.
func TestListVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, client := newBareServer(t)
		for _, name := range []string{"a", "b", "c"} {
			mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody(name)})
		}
		if err := client.CoreV1().ConfigMaps("default").Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		first := mustDo[corev1.ConfigMapList](t, server, call{path: cmPath + "?limit=1&resourceVersion=4&resourceVersionMatch=Exact"})
		token := url.QueryEscape(first.Continue)
		for _, c := range []struct {
			query string
			code  int
			want  string // names@revision, or a part of the message
		}{
			{"", 200, "a c@5"},
			{"resourceVersion=0", 200, "a c@5"},
			{"resourceVersion=3", 200, "a c@5"},
			{"resourceVersion=3&resourceVersionMatch=NotOlderThan", 200, "a c@5"},
			{"resourceVersion=0&resourceVersionMatch=NotOlderThan", 200, "a c@5"},
			{"resourceVersion=4&resourceVersionMatch=Exact", 200, "a b c@4"},
			{"resourceVersion=3&resourceVersionMatch=Exact", 200, "a b@3"},
			{"resourceVersion=2&resourceVersionMatch=Exact&labelSelector=x", 200, "@2"},
			{"resourceVersion=4&limit=2", 200, "a b@4"},
			{"resourceVersion=4&limit=2&resourceVersionMatch=NotOlderThan", 200, "a c@5"},
			{"resourceVersion=0&limit=1", 200, "a@5"},
			{"continue=" + token, 200, "b c@4"},
			{"continue=" + token + "&limit=1", 200, "b@4"},
			{"continue=" + token + "&resourceVersion=0", 200, "b c@4"},
			{"fieldSelector=metadata.name%3Dc", 200, "c@5"},
			{"fieldSelector=metadata.name%21%3Dc", 200, "a@5"},
			{"fieldSelector=metadata.name%3Db&resourceVersion=4&resourceVersionMatch=Exact", 200, "b@4"},
			{"resourceVersionMatch=Exact", 422, "resourceVersionMatch is forbidden unless resourceVersion is provided"},
			{"resourceVersion=0&resourceVersionMatch=Exact", 422, `resourceVersionMatch "exact" is forbidden for resourceVersion "0"`},
			{"resourceVersion=4&resourceVersionMatch=Newer", 422, "supported values"},
			{"continue=" + token + "&resourceVersionMatch=NotOlderThan&resourceVersion=1", 422, "resourceVersionMatch is forbidden when continue is provided"},
			{"continue=" + token + "&resourceVersion=4", 400, "specifying resource version is not allowed when using continue"},
			{"continue=nonsense", 400, "continue"},
			{"resourceVersion=x", 400, "invalid resource version"},
			{"resourceVersion=-1", 400, "invalid resource version"},
			{"resourceVersion=99999999999999999999", 400, "invalid resource version"},
			{"resourceVersion=6", 504, "Too large resource version: 6, current: 5"},
			{"resourceVersion=6&resourceVersionMatch=Exact", 504, "Too large resource version: 6, current: 5"},
			{"limit=-1", 200, "a c@5"}, // as upstream: no limit
			{"fieldSelector=data.k%3Dv", 400, `"data.k" is not a known field selector: only "metadata.name", "metadata.namespace"`},
			{"labelSelector=%3D%3D", 400, "found"},
		} {
			got := call{path: cmPath + "?" + c.query}.do(t, server)
			if got.code != c.code {
				t.Errorf("%s: %d %s, want %d", c.query, got.code, got.body, c.code)
				continue
			}
			if got.code != http.StatusOK {
				if !strings.Contains(got.status.Message, c.want) {
					t.Errorf("%s: %q, want %q", c.query, got.status.Message, c.want)
				}
				continue
			}
			var list corev1.ConfigMapList
			if err := json.Unmarshal([]byte(got.body), &list); err != nil {
				t.Fatal(err)
			}
			if text := names(list.Items) + "@" + list.ResourceVersion; text != c.want {
				t.Errorf("%s: %s, want %s", c.query, text, c.want)
			}
		}
	})
}

func TestGetVersions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := newBareServer(t)
		mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
		for query, want := range map[string]int{"": 200, "0": 200, "1": 200, "2": 200, "3": 504, "x": 400} {
			if got := (call{path: cmPath + "/a?resourceVersion=" + query}).do(t, server); got.code != want {
				t.Errorf("%q: %d %s", query, got.code, got.body)
			}
		}
		got := call{path: cmPath + "/a?resourceVersion=3"}.do(t, server)
		if _, ok := got.cause(metav1.CauseTypeResourceVersionTooLarge); !ok || got.status.Details.RetryAfterSeconds != 1 || got.status.Reason != metav1.StatusReasonTimeout {
			t.Errorf("future: %s", got.body)
		}
	})
}

func TestListsShowNothingTwice(t *testing.T) {
	server, _ := newBareServer(t)
	if got := (call{path: cmPath}).do(t, server); !strings.Contains(got.body, `"items":[]`) {
		t.Errorf("an empty list: %s", got.body)
	}
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
	got := call{path: cmPath}.do(t, server)
	if !strings.HasPrefix(got.body, `{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"2"}`) || strings.Contains(got.body, `"kind":"ConfigMap"`) {
		t.Errorf("a list: %s", got.body)
	}
	if got := (call{path: cmPath + "/a"}).do(t, server); !strings.HasPrefix(got.body, `{"kind":"ConfigMap","apiVersion":"v1"`) {
		t.Errorf("an object: %s", got.body)
	}
}

// TestOvertakenPages: once the ring has lost a page's revision the client gets 410
// and a token with which the rest of a newer list can be had.
func TestOvertakenPages(t *testing.T) {
	server, _ := newServerWith(t, raftstoretest.NewLocal(state.Options{RingBytes: 4 << 10}))
	for _, name := range []string{"a", "b", "c"} {
		mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody(name)})
	}
	first := mustDo[corev1.ConfigMapList](t, server, call{path: cmPath + "?limit=1"})
	old := first.ResourceVersion
	for i := range 40 {
		mustDo[corev1.ConfigMap](t, server, call{method: "PUT", path: cmPath + "/c", body: strings.Replace(cmBody("c"), `"v"`, fmt.Sprintf(`"%d"`, i), 1)})
	}
	got := call{path: cmPath + "?limit=1&continue=" + url.QueryEscape(first.Continue)}.do(t, server)
	refusal{code: http.StatusGone, reason: metav1.StatusReasonExpired, messageHas: "continue parameter is too old"}.check(t, "page 2", got)
	if got.status.Continue == "" {
		t.Fatal("no token to go on with")
	}
	rest := mustDo[corev1.ConfigMapList](t, server, call{path: cmPath + "?continue=" + url.QueryEscape(got.status.Continue)})
	if names(rest.Items) != "b c" || rest.Items[1].Data["k"] != "39" || rest.ResourceVersion == old {
		t.Errorf("rest = %s at %s: %v", names(rest.Items), rest.ResourceVersion, rest.Items)
	}
	got = call{path: cmPath + "?resourceVersionMatch=Exact&resourceVersion=" + old}.do(t, server)
	refusal{code: http.StatusGone, reason: metav1.StatusReasonExpired}.check(t, "exact", got)
	if got := (call{path: cmPath + "?watch=1&resourceVersion=" + old}).do(t, server); !strings.Contains(got.body, `"reason":"Expired"`) || !strings.Contains(got.body, "too old resource version") {
		t.Errorf("watch: %s", got.body)
	}
}

// TestPagesAcrossNamespaces: a list of all namespaces goes on inside the right one.
func TestPagesAcrossNamespaces(t *testing.T) {
	server, _ := newServer(t)
	for _, namespace := range []string{"n1", "n2"} {
		mustDo[corev1.Namespace](t, server, call{method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"` + namespace + `"}}`})
		for _, name := range []string{"a", "b"} {
			mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: "/api/v1/namespaces/" + namespace + "/configmaps", body: cmBody(name)})
		}
	}
	var all []string
	token := ""
	for {
		page := mustDo[corev1.ConfigMapList](t, server, call{path: "/api/v1/configmaps?limit=1&labelSelector=%21x&continue=" + url.QueryEscape(token)})
		for _, item := range page.Items {
			all = append(all, item.Namespace+"/"+item.Name)
		}
		if page.RemainingItemCount != nil {
			t.Error("a selected list tells how many remain")
		}
		if token = page.Continue; token == "" {
			break
		}
	}
	if got := strings.Join(all, " "); got != "n1/a n1/b n2/a n2/b" {
		t.Errorf("pages = %s", got)
	}
}

// TestFieldSelectorsOfKinds: which fields select, and what is said of others, is the kind's.
func TestFieldSelectorsOfKinds(t *testing.T) {
	server, _ := newServer(t)
	for path, want := range map[string]string{
		"/api/v1/persistentvolumes?fieldSelector=name%3Da":                                         `"name" is not a known field selector: only "metadata.name", "metadata.namespace"`,
		"/api/v1/persistentvolumeclaims?fieldSelector=name%3Da":                                    `"name" is not a known field selector: only "metadata.name", "metadata.namespace"`,
		"/apis/apps/v1/replicasets?fieldSelector=status.replicas%3D1":                              `"status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"`,
		"/apis/batch/v1/jobs?fieldSelector=type%3Da":                                               `field label "type" not supported for Job`,
		"/apis/resource.k8s.io/v1/resourceslices?fieldSelector=name%3Da":                           "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: name",
		"/apis/certificates.k8s.io/v1/podcertificaterequests?fieldSelector=metadata.namespace%3Da": "field label not supported: metadata.namespace",
		"/api/v1/pods?fieldSelector=name%3Da":                                                      "field label not supported: name",
	} {
		refusal{code: 400, reason: metav1.StatusReasonBadRequest, messageHas: want}.check(t, path, call{path: path}.do(t, server))
	}
	if got := (call{path: "/api/v1/persistentvolumes?fieldSelector=metadata.namespace%3Da"}).do(t, server); got.code != 200 {
		t.Errorf("persistent volumes of a namespace: %d %s", got.code, got.body)
	}
}
