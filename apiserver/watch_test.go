package apiserver

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// frames reads a watch over HTTP as "TYPE name@version".
type frames struct {
	t    *testing.T
	code int
	body io.ReadCloser
	scan *bufio.Scanner
}

func openWatch(t *testing.T, server *Server, path string) *frames {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://in-process"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Transport(Caller{User: admin}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	return &frames{t: t, code: response.StatusCode, body: response.Body, scan: bufio.NewScanner(response.Body)}
}

func (f *frames) next() string {
	f.t.Helper()
	if !f.scan.Scan() {
		return "END"
	}
	var frame struct {
		Type   string
		Object metav1.PartialObjectMetadata
	}
	if err := json.Unmarshal(f.scan.Bytes(), &frame); err != nil {
		f.t.Fatalf("%v: %s", err, f.scan.Text())
	}
	text := frame.Type + " " + frame.Object.Name + "@" + frame.Object.ResourceVersion
	if frame.Object.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
		text += " initial-events-end"
	}
	return text
}

func (f *frames) expect(want ...string) {
	f.t.Helper()
	var got []string
	for range want {
		got = append(got, f.next())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.t.Error(diff)
	}
}

// change does things to config maps whose revisions are 2, 3, ... in turn.
func change(t *testing.T, server *Server, steps ...string) {
	t.Helper()
	for _, step := range steps {
		verb, name, _ := strings.Cut(step, " ")
		switch verb {
		case "create":
			mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody(name)})
		case "label", "unlabel":
			value := map[string]string{"label": `"web"`, "unlabel": "null"}[verb]
			mustDo[corev1.ConfigMap](t, server, call{method: "PATCH", path: cmPath + "/" + name, contentType: patchTypeOf["merge"], body: `{"metadata":{"labels":{"app":` + value + `}}}`})
		case "touch":
			mustDo[corev1.ConfigMap](
				t,
				server,
				call{method: "PATCH", path: cmPath + "/" + name, contentType: patchTypeOf["merge"], body: `{"data":{"t":"` + strconv.FormatInt(time.Now().UnixNano(), 10) + `"}}`},
			)
		case "delete":
			mustDo[metav1.Status](t, server, call{method: "DELETE", path: cmPath + "/" + name})
		}
	}
}

func TestWatches(t *testing.T) {
	for _, c := range []struct {
		name, query string
		want        []string
	}{
		{"from now", "watch=1&resourceVersion=0", []string{"ADDED a@6", "ADDED c@4", "ADDED d@7", "MODIFIED d@8", "DELETED d@9"}},
		{"unset", "watch=true", []string{"ADDED a@6", "ADDED c@4", "ADDED d@7", "MODIFIED d@8", "DELETED d@9"}},
		{"from the first", "watch=1&resourceVersion=1", []string{
			"ADDED a@2", "ADDED b@3", "ADDED c@4", "DELETED b@5", "MODIFIED a@6", "ADDED d@7", "MODIFIED d@8", "DELETED d@9"}},
		{"from between", "watch=1&resourceVersion=4", []string{"DELETED b@5", "MODIFIED a@6", "ADDED d@7", "MODIFIED d@8", "DELETED d@9"}},
		{"a selector that an object enters and leaves", "watch=1&resourceVersion=1&labelSelector=app%3Dweb", []string{"ADDED a@6", "ADDED d@8", "DELETED d@9"}},
		{"the others", "watch=1&resourceVersion=4&labelSelector=%21app", []string{"DELETED b@5", "DELETED a@6", "ADDED d@7", "DELETED d@8"}},
		{"one by field", "watch=1&resourceVersion=1&fieldSelector=metadata.name%3Dd", []string{"ADDED d@7", "MODIFIED d@8", "DELETED d@9"}},
		{"a streamed list", "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", []string{
			"ADDED a@6", "ADDED c@4", "BOOKMARK @6 initial-events-end", "ADDED d@7", "MODIFIED d@8", "DELETED d@9"}},
		{"a streamed list of a selection", "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&labelSelector=app&resourceVersion=3", []string{
			"ADDED a@6", "BOOKMARK @6 initial-events-end", "ADDED d@8", "DELETED d@9"}},
		{"without initial events", "watch=1&sendInitialEvents=false&resourceVersionMatch=NotOlderThan", []string{"ADDED d@7", "MODIFIED d@8", "DELETED d@9"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			server, _ := newBareServer(t)
			change(t, server, "create a", "create b", "create c", "delete b", "label a")
			w := openWatch(t, server, cmPath+"?"+c.query)
			change(t, server, "create d", "label d", "delete d")
			w.expect(c.want...)
		})
	}
}

func TestWatchPaths(t *testing.T) {
	server, _ := newBareServer(t)
	change(t, server, "create a", "create b")
	for path, want := range map[string][]string{
		"/api/v1/watch/namespaces/default/configmaps":                           {"ADDED a@2", "ADDED b@3"},
		"/api/v1/watch/configmaps":                                              {"ADDED a@2", "ADDED b@3"},
		"/api/v1/watch/namespaces/default/configmaps/b":                         {"ADDED b@3"},
		"/api/v1/configmaps?watch=true&fieldSelector=metadata.name%3Db":         {"ADDED b@3"},
		"/api/v1/configmaps?watch=1&fieldSelector=metadata.namespace%3Ddefault": {"ADDED a@2", "ADDED b@3"},
	} {
		t.Run(path, func(t *testing.T) { openWatch(t, server, path).expect(want...) })
	}
}

// TestGetIgnoresWatch: only collections are watched by parameter, as upstream.
func TestGetIgnoresWatch(t *testing.T) {
	server, _ := newServer(t)
	change(t, server, "create a")
	if cm := mustDo[corev1.ConfigMap](t, server, call{path: cmPath + "/a?watch=true"}); cm.Name != "a" {
		t.Errorf("got %+v", cm)
	}
}

func TestWatchRefusals(t *testing.T) {
	server, _ := newServer(t)
	for query, want := range map[string]refusal{
		"sendInitialEvents=true&resourceVersionMatch=Exact": {code: 422, reason: metav1.StatusReasonInvalid, messageHas: "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"},
		"sendInitialEvents=true":                            {code: 422, reason: metav1.StatusReasonInvalid, messageHas: "sendInitialEvents"},
		"resourceVersionMatch=NotOlderThan":                 {code: 422, reason: metav1.StatusReasonInvalid, messageHas: "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"},
		"resourceVersion=x":                                 {code: 400, reason: metav1.StatusReasonBadRequest, messageHas: "invalid resource version"},
		"fieldSelector=spec.x%3D1":                          {code: 400, reason: metav1.StatusReasonBadRequest, messageHas: `"spec.x" is not a known field selector`},
	} {
		want.check(t, query, call{path: cmPath + "?watch=1&" + query}.do(t, server))
	}
}

// TestWatchEndsInTime: after timeoutSeconds the stream ends cleanly, with a last
// bookmark two seconds before.
func TestWatchEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := newServer(t)
		start := time.Now()
		w := openWatch(t, server, cmPath+"?watch=1&timeoutSeconds=150&allowWatchBookmarks=true")
		change(t, server, "create a")
		mustDo[corev1.Pod](t, server, call{method: "POST", path: podPath, body: podBody("p")}) // revision 3
		w.expect("BOOKMARK @2 initial-events-end", "ADDED a@3", "BOOKMARK @4", "BOOKMARK @4", "BOOKMARK @4", "END")
		if took := time.Since(start); took != 150*time.Second {
			t.Errorf("the watch took %v", took)
		}
		if err := w.scan.Err(); err != nil {
			t.Errorf("the end is not clean: %v", err)
		}
	})
}

// TestWatchesLoseNothing opens and closes watches at every revision while others
// write; together they must see each change once.
func TestWatchesLoseNothing(t *testing.T) {
	_, client := newBareServer(t)
	cms := client.CoreV1().ConfigMaps("default")
	const writers, writes = 4, 30
	done := make(chan error, writers)
	for i := range writers {
		go func() {
			var err error
			for n := range writes {
				if err == nil {
					_, err = cms.Create(t.Context(), configMap(fmt.Sprintf("w%d-%d", i, n), nil), metav1.CreateOptions{})
				}
			}
			done <- err
		}()
	}
	version := "1"
	for seen := 0; seen < writers*writes; {
		ctx, cancel := context.WithCancel(t.Context())
		w, err := cms.Watch(ctx, metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true})
		if err != nil {
			t.Fatal(err)
		}
		for range 1 + seen%7 {
			e := <-w.ResultChan()
			if e.Type != watch.Added {
				t.Fatalf("event = %+v", e)
			}
			at := e.Object.(*corev1.ConfigMap).ResourceVersion
			if before, _ := strconv.Atoi(version); at != strconv.Itoa(before+1) {
				t.Fatalf("event %s after %s", at, version)
			}
			version = at
			if seen++; seen == writers*writes {
				break
			}
		}
		w.Stop()
		cancel()
	}
	for range writers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestTableWatchesHaveOneHeader: each watch of a Table tells its columns with its first
// event alone, whatever other watches were sent of the same objects.
func TestTableWatchesHaveOneHeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := newServer(t)
		change(t, server, "create a", "create b", "create c")
		for _, query := range []string{"resourceVersion=0", "resourceVersion=0", "resourceVersion=0&fieldSelector=metadata.name%21%3Da", "resourceVersion=0"} {
			path := cmPath + "?watch=1&timeoutSeconds=1&" + query
			answer := call{path: path, accept: "application/json;as=Table;v=v1;g=meta.k8s.io"}.do(t, server)
			var columns []int
			for line := range strings.Lines(answer.body) {
				var event struct{ Object metav1.Table }
				if err := json.Unmarshal([]byte(line), &event); err != nil {
					t.Fatalf("%v: %s", err, line)
				}
				columns = append(columns, len(event.Object.ColumnDefinitions))
			}
			if len(columns) < 2 || columns[0] == 0 || slices.Max(columns[1:]) != 0 {
				t.Errorf("%s: columns by event: %v", query, columns)
			}
		}
	})
}

// TestWatchWithoutTime: a time that is over is no fault of the client's.
func TestWatchWithoutTime(t *testing.T) {
	server, _ := newServer(t)
	change(t, server, "create a")
	answer := call{path: cmPath + "?watch=1&timeoutSeconds=-4"}.do(t, server)
	if answer.code != http.StatusOK || answer.body != "" {
		t.Errorf("%d: %s", answer.code, answer.body)
	}
}

// TestBookmarksOfEveryKind: their objects are empty, but for what upstream's conversions fill in.
func TestBookmarksOfEveryKind(t *testing.T) {
	server, _ := newServer(t)
	for path, want := range map[string]string{
		"replicasets":         `"spec":{"replicas":0,"selector":null`,
		"deployments":         `"spec":{"replicas":0,"selector":null`,
		"statefulsets":        `"spec":{"replicas":0,"selector":null`,
		"daemonsets":          `"deprecated.daemonset.template.generation":"0"`,
		"controllerrevisions": `"metadata":{"resourceVersion":"2","annotations":{"k8s.io/initial-events-end":"true"}},"data":null,"revision":0`,
	} {
		answer := call{path: "/apis/apps/v1/" + path + "?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"}.do(t, server)
		if !strings.Contains(answer.body, want) {
			t.Errorf("%s: %s", path, answer.body)
		}
	}
}
