package requestmetrics

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// served sends a request through Serve.
func served(t *testing.T, m *Requests, method, path string, streams bool, handler http.HandlerFunc) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/apply-patch+yaml")
	}
	resolver := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := resolver.NewRequestInfo(r)
	if err != nil {
		t.Fatal(err)
	}
	m.Serve(httptest.NewRecorder(), r, info, streams, handler)
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// TestLabels are upstream's for each form of request.
func TestLabels(t *testing.T) {
	for name, c := range map[string]struct{ method, path, want string }{
		"get":        {"GET", "/api/v1/namespaces/n/pods/p", `resource="pods",scope="resource",subresource="",verb="GET",version="v1"`},
		"list":       {"GET", "/api/v1/namespaces/n/pods", `resource="pods",scope="namespace",subresource="",verb="LIST",version="v1"`},
		"list all":   {"GET", "/api/v1/pods", `resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"`},
		"one listed": {"GET", "/api/v1/pods?fieldSelector=metadata.name=p", `scope="cluster",subresource="",verb="LIST",version="v1"`},
		"watch":      {"GET", "/api/v1/pods?watch=1", `scope="cluster",subresource="",verb="WATCH",version="v1"`},
		"create":     {"POST", "/api/v1/namespaces/n/pods", `resource="pods",scope="resource",subresource="",verb="POST",version="v1"`},
		"apply":      {"PATCH", "/apis/apps/v1/namespaces/n/deployments/d", `group="apps",resource="deployments",scope="resource",subresource="",verb="APPLY"`},
		"delete all": {"DELETE", "/api/v1/namespaces/n/pods", `scope="namespace",subresource="",verb="DELETE",version="v1"`},
		"dry run":    {"PUT", "/api/v1/nodes/n?dryRun=All", `dry_run="All",group="",resource="nodes",scope="resource",subresource="",verb="PUT"`},
		"strange":    {"PUT", "/api/v1/nodes/n?dryRun=Some", `dry_run="invalid",`},
		"logs":       {"GET", "/api/v1/namespaces/n/pods/p/log", `resource="pods",scope="resource",subresource="log",verb="CONNECT"`},
		"health":     {"GET", "/readyz", `group="",resource="",scope="",subresource="/readyz",verb="GET",version=""`},
	} {
		t.Run(name, func(t *testing.T) {
			m := New()
			served(t, m, c.method, c.path, false, status(http.StatusTeapot))
			text := gathered(t, m)
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "apiserver_request_total{") && strings.Contains(line, `code="418"`) && strings.Contains(line, c.want) {
					return
				}
			}
			t.Errorf("%s is missing in\n%s", c.want, text)
		})
	}
}

func gathered(t *testing.T, m *Requests) string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	return w.Body.String()
}

// TestRunning requests are counted while they run, streams apart; a panic is a 500.
func TestRunning(t *testing.T) {
	m := New()
	served(t, m, "GET", "/api/v1/pods", false, func(http.ResponseWriter, *http.Request) {
		if reads, writes := testutil.ToFloat64(m.readOnly), testutil.ToFloat64(m.mutating); reads != 1 || writes != 0 {
			t.Errorf("%v reads and %v writes run", reads, writes)
		}
	})
	served(t, m, "GET", "/api/v1/pods?watch=1", true, func(http.ResponseWriter, *http.Request) {
		if reads, streams := testutil.ToFloat64(m.readOnly), testutil.ToFloat64(m.longRunning); reads != 0 || streams != 1 {
			t.Errorf("%v reads and %v streams run", reads, streams)
		}
	})
	if streams := testutil.ToFloat64(m.longRunning); streams != 0 {
		t.Errorf("%v streams run", streams)
	}
	func() {
		defer func() { _ = recover() }()
		served(t, m, "DELETE", "/api/v1/nodes/n", false, func(http.ResponseWriter, *http.Request) { panic("a fault") })
	}()
	if writes := testutil.ToFloat64(m.mutating); writes != 0 {
		t.Errorf("%v writes run", writes)
	}
	text := gathered(t, m)
	for _, want := range []string{`code="200"`, `code="500"`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}

// TestSizes: the bytes of what is read are counted, and not those of other answers.
func TestSizes(t *testing.T) {
	m := New()
	for _, method := range []string{"GET", "POST"} {
		served(t, m, method, "/api/v1/namespaces/a/pods", false, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("twelve bytes"))
		})
	}
	text := gathered(t, m)
	if !strings.Contains(text, `apiserver_response_sizes_sum{component="apiserver",group="",resource="pods",scope="namespace",subresource="",verb="LIST",version="v1"} 12`) ||
		strings.Contains(text, `apiserver_response_sizes_sum{component="apiserver",group="",resource="pods",scope="namespace",subresource="",verb="POST"`) {
		t.Error(text)
	}
}
