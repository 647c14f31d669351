package discovery_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func TestHealth(t *testing.T) {
	var log strings.Builder
	handler := newHandler(t, discovery.Config{
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Checks: []discovery.Check{
			{Name: "log", Check: discovery.Passes, Live: discovery.Passes},
			{Name: "leader", As: []string{"etcd"}, Check: func(context.Context) error { return errors.New("no leader since 3s") }},
			{Name: "hook", As: []string{"start/a", "start/b"}, Check: discovery.Passes, OnlyReady: true},
			{Name: "disk", Check: func(context.Context) error { return discovery.Remark("has little room") }},
		},
	})
	for _, c := range []struct {
		path string
		code int
		want string
	}{
		{"/livez", 200, "ok"},
		{"/livez?verbose", 200, "[+]ping ok\n[+]log ok\nlivez check passed\n"},
		{"/readyz", 500, "[+]ping ok\n[+]log ok\n[-]leader failed: reason withheld\n[-]etcd failed: reason withheld\n" +
			"[+]hook ok\n[+]start/a ok\n[+]start/b ok\n[+]disk has little room: ok\nreadyz check failed\n"},
		{"/healthz?exclude=leader&exclude=etcd&verbose=1", 200, "[+]ping ok\n[+]log ok\n[+]leader excluded: ok\n[+]etcd excluded: ok\n[+]disk has little room: ok\nhealthz check passed\n"},
		{"/readyz/log", 200, "ok"},
		{"/readyz/disk", 200, "ok"},
		{"/readyz/leader", 500, "[-]leader failed: reason withheld\nreadyz check failed\n"},
		{"/readyz/etcd", 500, "[-]etcd failed: reason withheld\nreadyz check failed\n"},
		{"/readyz/start/b", 200, "ok"},
		{"/healthz/start/b", 404, "404 page not found\n"},
		{"/livez/leader", 404, "404 page not found\n"},
	} {
		response := get(t, handler, c.path)
		if got := body(t, response); response.StatusCode != c.code || got != c.want {
			t.Errorf("%s: %d %q, want %d %q", c.path, response.StatusCode, got, c.code, c.want)
		}
	}
	if !strings.Contains(log.String(), "no leader since 3s") {
		t.Errorf("the reason is not in the log: %s", &log)
	}
}

func TestHangingCheckFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handler := newHandler(t, discovery.Config{Checks: []discovery.Check{
			{Name: "stuck", Check: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
		}})
		if got := get(t, handler, "/readyz").StatusCode; got != http.StatusInternalServerError {
			t.Errorf("a check that hangs: %d, want 500", got)
		}
	})
}

// TestHealthDoesNotWaitForTheStore: without a majority nobody knows the custom kinds of the
// moment, and the server lives nevertheless.
func TestHealthDoesNotWaitForTheStore(t *testing.T) {
	handler := newHandler(t, discovery.Config{
		Custom: func(context.Context) ([]*resource.Any, error) { return nil, errors.New("no leader") },
	})
	for path, want := range map[string]int{"/livez": 200, "/version": 200, "/apis": 503} {
		if got := get(t, handler, path).StatusCode; got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
}

func TestVersion(t *testing.T) {
	var info apiversion.Info
	if err := json.Unmarshal([]byte(body(t, get(t, newHandler(t, discovery.Config{}), "/version"))), &info); err != nil {
		t.Fatal(err)
	}
	want := apiversion.Info{Major: "1", Minor: "37", GitVersion: "v1.37.2+setpoint.0.1.0"}
	got := apiversion.Info{Major: info.Major, Minor: info.Minor, GitVersion: info.GitVersion}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "setpoint_test_total", Help: "Counts."})
	registry.MustRegister(counter)
	counter.Inc()
	if got := body(t, get(t, newHandler(t, discovery.Config{Metrics: registry}), "/metrics")); !strings.Contains(got, "setpoint_test_total 1") {
		t.Errorf("metrics: %s", got)
	}
}

// TestHealthIndicators: what a check said is in /metrics/slis, under upstream's names.
func TestHealthIndicators(t *testing.T) {
	sick := errors.New("sick")
	h := newHandler(t, discovery.Config{
		Metrics: prometheus.NewRegistry(), Checks: []discovery.Check{{Name: "disk", Check: func(context.Context) error { return sick }}},
	})
	get(t, h, "/readyz")
	sick = nil
	get(t, h, "/readyz")
	got := body(t, get(t, h, "/metrics/slis"))
	for _, want := range []string{
		`kubernetes_healthcheck{name="disk",type="readyz"} 1`, `kubernetes_healthcheck{name="ping",type="livez"} 1`,
		`kubernetes_healthchecks_total{name="disk",status="error",type="readyz"} 1`,
		`kubernetes_healthchecks_total{name="ping",status="success",type="readyz"} 2`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is missing in\n%s", want, got)
		}
	}
}

// TestHealthIndicatorsOfAServerThatNobodyAsks: /metrics/slis asks by itself then, and not for every scrape.
func TestHealthIndicatorsOfAServerThatNobodyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, sick := 0, error(nil)
		h := newHandler(t, discovery.Config{Metrics: prometheus.NewRegistry(), Checks: []discovery.Check{{Name: "disk", Check: func(context.Context) error {
			asked++
			return sick
		}}}})
		show := func(want string, times int) {
			t.Helper()
			if got := body(t, get(t, h, "/metrics/slis")); !strings.Contains(got, `kubernetes_healthcheck{name="disk",type="readyz"} `+want) || asked != times {
				t.Errorf("asked %d times, want %d, and %s in\n%s", asked, times, want, got)
			}
		}
		show("1", 1)
		sick = errors.New("sick")
		show("1", 1)
		time.Sleep(10 * time.Second)
		show("0", 2)
		get(t, h, "/readyz")
		time.Sleep(9 * time.Second)
		show("0", 3)
	})
}
