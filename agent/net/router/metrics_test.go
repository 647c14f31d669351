package router

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
)

// TestMetrics: requests are counted by Ingress and code, and the series end with the Ingress.
func TestMetrics(t *testing.T) {
	s := newSite(t, ingress("web"), service("web"), slice("web", "10.0.0.1"))
	s.serves("web", 1)
	s.pod("10.0.0.1", func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/odd" {
			w.WriteHeader(499)
		}
	})
	for _, path := range []string{"/", "/", "/odd"} {
		s.ask("GET", "web", path, "")
	}
	s.ask("GET", "nobody", "/", "")
	const want = `
# HELP setpoint_router_requests_total Requests at ports of Ingresses and Gateways that were answered, by the Ingress or route, and the code.
# TYPE setpoint_router_requests_total counter
setpoint_router_requests_total{code="200",kind="Ingress",name="web",namespace="n"} 2
setpoint_router_requests_total{code="404",kind="none",name="",namespace=""} 1
setpoint_router_requests_total{code="other",kind="Ingress",name="web",namespace="n"} 1
`
	s.until("counts", func() bool { // a client has its answer a moment before it is counted
		return testutil.CollectAndCompare(s.router.Metrics, strings.NewReader(want), "setpoint_router_requests_total") == nil
	})
	if n := testutil.CollectAndCount(s.router.Metrics, "setpoint_router_request_duration_seconds"); n != 2 {
		t.Errorf("%d histograms", n)
	}
	s.router.Metrics.keep(nil)
	if n := testutil.CollectAndCount(s.router.Metrics, "setpoint_router_requests_total"); n != 1 {
		t.Errorf("%d series without Ingresses", n)
	}
}

// TestMetricsAreBounded: no number of routes makes more series.
func TestMetricsAreBounded(t *testing.T) {
	m := NewMetrics()
	var all []owner
	for i := range 2 * routesMax {
		all = append(all, owner{"Ingress", "n", fmt.Sprintf("i%05d", i)})
	}
	m.keep(all)
	for _, o := range all {
		m.count(&table.Route{Ingress: types.NamespacedName{Namespace: o.namespace, Name: o.name}}, 200, time.Second)
	}
	if n := testutil.CollectAndCount(m, "setpoint_router_requests_total"); n != routesMax+1 {
		t.Errorf("%d series", n)
	}
	m.keep(all[1:])
	m.keep(all)
	if n := testutil.CollectAndCount(m, "setpoint_router_requests_total"); n != routesMax {
		t.Errorf("%d series after one was away", n)
	}
}

func TestAccessLog(t *testing.T) {
	var out bytes.Buffer
	l := newAccessLog(&out, NewMetrics())
	req := httptest.NewRequest("GET", "http://a.com/path?secret=1", nil)
	req.Header.Set(requestID, "id")
	req.Header.Set("User-Agent", strings.Repeat("x", 2*accessFieldBytesMax))
	l.add(&access{Request: req, at: 80, owner: owner{"Ingress", "n", "web"}, code: 200, bytes: 7, begun: time.Unix(1, 0), took: time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	l.run(ctx)
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	for key, want := range map[string]any{
		"port": 80.0, "client": "192.0.2.1", "method": "GET", "host": "a.com", "path": "/path", "code": 200.0, "bytes": 7.0, "seconds": 1.0, "kind": "Ingress",
		"namespace": "n", "name": "web", "requestID": "id", "tls": false, "userAgent": strings.Repeat("x", accessFieldBytesMax) + "…(2,048 bytes)",
	} {
		if line[key] != want {
			t.Errorf("%s: %v, want %v", key, line[key], want)
		}
	}
	if strings.Contains(out.String(), "secret") || line["level"] != nil || line["msg"] != nil {
		t.Errorf("%s", out.String())
	}
}

// TestNobodyWaitsForTheAccessLog: what is not written fast enough is left out, and counted.
func TestNobodyWaitsForTheAccessLog(t *testing.T) {
	l := newAccessLog(&bytes.Buffer{}, NewMetrics())
	for range accessQueueMax + 3 {
		l.add(&access{Request: &http.Request{URL: &url.URL{}}})
	}
	if n := testutil.ToFloat64(l.metrics.unlogged); n != 3 {
		t.Errorf("%v are left out", n)
	}
}
