package probes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/record"
	utilexec "k8s.io/utils/exec"
)

// script answers commands; a missing one succeeds.
type script struct {
	mu      sync.Mutex
	answers map[string]error
	runs    map[string]int
	slow    time.Duration
}

func newScript() *script { return &script{answers: map[string]error{}, runs: map[string]int{}} }

func (s *script) set(cmd string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[cmd] = err
}

func (s *script) count(cmd string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runs[cmd]
}

func (s *script) ExecSync(_ context.Context, _ string, cmd []string, _ time.Duration) (stdout, stderr []byte, err error) {
	s.mu.Lock()
	slow := s.slow
	s.runs[cmd[0]]++
	err = s.answers[cmd[0]]
	s.mu.Unlock()
	time.Sleep(slow)
	return []byte("said " + cmd[0]), nil, err
}

func exit(code int) error { return utilexec.CodeExitError{Err: errors.New("exit"), Code: code} }

func execProbe(cmd string, edit func(*corev1.Probe)) *corev1.Probe {
	p := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{cmd}}}, PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3}
	if edit != nil {
		edit(p)
	}
	return p
}

// lab is one container under probes.
type lab struct {
	*Set
	*script
	t       *testing.T
	changes int
	events  *record.FakeRecorder
}

func inBubble(t *testing.T, c corev1.Container, target Target, body func(l *lab), before ...func(l *lab)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lab{t: t, script: newScript(), events: record.NewFakeRecorder(1000)}
		var mu sync.Mutex
		l.Set = New(Config{Exec: l.script, Events: l.events, UserAgent: "test", Changed: func() { mu.Lock(); l.changes++; mu.Unlock() }})
		target.Pod, target.Container, target.ID = &corev1.Pod{}, &c, "id"
		if target.StartedAt.IsZero() {
			target.StartedAt = time.Now()
		}
		for _, prepare := range before { // the first probe comes at once
			prepare(l)
		}
		l.Sync(t.Context(), []Target{target})
		body(l)
		l.Close()
	})
}

func TestWithoutProbesAContainerIsReady(t *testing.T) {
	inBubble(t, corev1.Container{}, Target{}, func(l *lab) {
		if !l.Ready("id") || !l.Started("id") || l.Failed("id") != "" {
			t.Error("a running container without probes is started and ready")
		}
		if l.Ready("other") {
			t.Error("a container that is no target is not ready")
		}
	})
}

func TestReadiness(t *testing.T) {
	c := corev1.Container{ReadinessProbe: execProbe("ready", func(p *corev1.Probe) { p.SuccessThreshold = 2 })}
	inBubble(t, c, Target{}, func(l *lab) {
		synctest.Wait()
		if l.count("ready") != 1 || l.Ready("id") {
			t.Errorf("at once: %d probes, ready %v; want 1, false", l.count("ready"), l.Ready("id"))
		}
		time.Sleep(10*time.Second + time.Millisecond)
		synctest.Wait()
		if !l.Ready("id") || l.changes != 1 {
			t.Errorf("after two successes: ready %v, %d changes", l.Ready("id"), l.changes)
		}
		l.set("ready", exit(1))
		time.Sleep(25 * time.Second)
		if !l.Ready("id") {
			t.Error("unready before the threshold")
		}
		time.Sleep(10 * time.Second)
		if l.Ready("id") {
			t.Error("still ready after three failures")
		}
		if e := <-l.events.Events; e != "Warning Unhealthy Readiness probe failed: said ready" {
			t.Errorf("event %q", e)
		}
	})
}

func TestLivenessStopsAfterItsVerdict(t *testing.T) {
	c := corev1.Container{LivenessProbe: execProbe("alive", func(p *corev1.Probe) { p.InitialDelaySeconds = 30 })}
	inBubble(t, c, Target{}, func(l *lab) {
		l.set("alive", errors.New("executable file not found"))
		time.Sleep(29 * time.Second)
		if l.count("alive") != 0 {
			t.Error("probed before the initial delay was over")
		}
		time.Sleep(22 * time.Second)
		if l.Failed("id") != Liveness {
			t.Errorf("failed = %q", l.Failed("id"))
		}
		time.Sleep(time.Hour)
		if n := l.count("alive"); n != 3 {
			t.Errorf("%d probes, want 3", n)
		}
	})
}

func TestStartupHoldsTheOthersBack(t *testing.T) {
	c := corev1.Container{StartupProbe: execProbe("up", nil), LivenessProbe: execProbe("alive", nil), ReadinessProbe: execProbe("ready", nil)}
	inBubble(t, c, Target{}, func(l *lab) {
		time.Sleep(15 * time.Second)
		if l.Started("id") || l.count("alive")+l.count("ready") != 0 {
			t.Error("others probed before the start")
		}
		l.set("up", nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if !l.Started("id") || !l.Ready("id") {
			t.Errorf("started %v, ready %v", l.Started("id"), l.Ready("id"))
		}
		asked := l.count("up")
		time.Sleep(time.Minute)
		if l.count("up") != asked {
			t.Error("the startup probe went on after it had passed")
		}
	}, func(l *lab) { l.set("up", exit(1)) })
}

func TestStartupFailure(t *testing.T) {
	inBubble(t, corev1.Container{StartupProbe: execProbe("up", nil)}, Target{}, func(l *lab) {
		time.Sleep(20 * time.Second)
		if l.Failed("id") != "" {
			t.Error("failed before the third regular probe")
		}
		time.Sleep(settleTime + time.Millisecond)
		if l.Failed("id") != Startup {
			t.Errorf("failed = %q", l.Failed("id"))
		}
	}, func(l *lab) { l.set("up", exit(1)) })
}

func TestAPausedProberGivesNoVerdict(t *testing.T) {
	c := corev1.Container{LivenessProbe: execProbe("alive", func(p *corev1.Probe) { p.FailureThreshold = 1 })}
	inBubble(t, c, Target{}, func(l *lab) {
		time.Sleep(time.Second)
		l.script.mu.Lock()
		l.slow, l.answers["alive"] = time.Minute, exit(1) // the answer arrives long after it was due
		l.script.mu.Unlock()
		time.Sleep(70 * time.Second)
		synctest.Wait()
		if l.Failed("id") != "" {
			t.Error("a verdict from a probe that was away")
		}
	})
	now := time.Unix(1000, 0)
	for _, tc := range []struct {
		took time.Duration
		want bool
	}{{0, false}, {time.Second, false}, {11 * time.Second, false}, {12 * time.Second, true}, {time.Hour, true}} {
		if got := paused(now, now.Add(tc.took), 10*time.Second, time.Second); got != tc.want {
			t.Errorf("took %v: paused = %v, want %v", tc.took, got, tc.want)
		}
	}
}

func TestKnownContainersKeepTheirVerdict(t *testing.T) {
	c := corev1.Container{ReadinessProbe: execProbe("ready", nil), StartupProbe: execProbe("up", nil)}
	inBubble(t, c, Target{Known: true, WasReady: true, WasStarted: true}, func(l *lab) {
		synctest.Wait()
		if !l.Ready("id") || !l.Started("id") || l.count("ready") != 0 {
			t.Error("a restart of the agent must not change what was known")
		}
		time.Sleep(11 * time.Second)
		if l.count("ready") == 0 {
			t.Error("never probed again")
		}
	})
}

func TestSyncStopsWhatIsGone(t *testing.T) {
	inBubble(t, corev1.Container{LivenessProbe: execProbe("alive", nil)}, Target{}, func(l *lab) {
		time.Sleep(settleTime + time.Millisecond)
		l.Sync(l.t.Context(), nil)
		time.Sleep(time.Minute)
		if n := l.count("alive"); n != 1 {
			t.Errorf("%d probes after the container had gone, want 1", n)
		}
	})
}

// probe runs one check against a live server.
func probe(t *testing.T, ip string, c *corev1.Container, p *corev1.Probe) result {
	t.Helper()
	pr := &prober{Target: Target{Pod: &corev1.Pod{}, Container: c, IP: ip}, cfg: &Config{UserAgent: "kube-probe/test"}}
	return pr.check(t.Context(), p, time.Second)
}

func TestHTTP(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.UserAgent(), " ", r.Header.Get("X-Test"), " ", r.Host, " ", r.URL.RawQuery)
	})
	mux.HandleFunc("/bad", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) })
	mux.HandleFunc("/local", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/ok", http.StatusFound) })
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusFound)
	})
	srv := httptest.NewServer(mux)
	defer srv.Close()
	u, err := url.Parse(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	c := &corev1.Container{Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: int32(port)}}}
	get := func(path string, port intstr.IntOrString) result {
		h := &corev1.HTTPGetAction{Path: path, Port: port, HTTPHeaders: []corev1.HTTPHeader{{Name: "X-Test", Value: "v"}, {Name: "Host", Value: "virtual"}}}
		return probe(t, u.Hostname(), c, &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: h}})
	}
	if r := get("/ok?a=b", intstr.FromString("web")); !r.ok || r.message != "kube-probe/test v virtual a=b" {
		t.Errorf("named port: %+v", r)
	}
	if r := get("/bad", intstr.FromInt32(int32(port))); r.ok || r.message != "HTTP probe failed with statuscode: 503" {
		t.Errorf("503: %+v", r)
	}
	if r := get("/local", intstr.FromInt32(int32(port))); !r.ok || r.warning != "" {
		t.Errorf("local redirect: %+v", r)
	}
	if r := get("/away", intstr.FromInt32(int32(port))); !r.ok || r.warning == "" {
		t.Errorf("redirect to another host: %+v", r)
	}
	if r := get("/ok", intstr.FromString("nope")); r.ok || !strings.Contains(r.message, "invalid port number") {
		t.Errorf("unknown port: %+v", r)
	}
}

func TestTCP(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := intstr.FromInt32(int32(l.Addr().(*net.TCPAddr).Port))
	p := &corev1.Probe{ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}}
	if r := probe(t, "127.0.0.1", &corev1.Container{}, p); !r.ok {
		t.Errorf("open port: %+v", r)
	}
	l.Close()
	if r := probe(t, "127.0.0.1", &corev1.Container{}, p); r.ok {
		t.Error("closed port counts as success")
	}
}

func TestGRPC(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv, checks := grpc.NewServer(), health.NewServer()
	grpc_health_v1.RegisterHealthServer(srv, checks)
	checks.SetServingStatus("down", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	defer func() { srv.Stop(); <-done }()
	ask := func(service string) result {
		g := &corev1.GRPCAction{Port: int32(l.Addr().(*net.TCPAddr).Port), Service: &service}
		return probe(t, "127.0.0.1", &corev1.Container{}, &corev1.Probe{ProbeHandler: corev1.ProbeHandler{GRPC: g}})
	}
	if r := ask(""); !r.ok {
		t.Errorf("serving: %+v", r)
	}
	if r := ask("down"); r.ok || !strings.Contains(r.message, "NOT_SERVING") {
		t.Errorf("down: %+v", r)
	}
	if r := ask("unknown"); r.ok {
		t.Error("an unknown service counts as success")
	}
}
