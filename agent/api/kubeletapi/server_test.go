package kubeletapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	criremote "k8s.io/cri-streaming/pkg/streaming/remotecommand"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
	utilexec "k8s.io/utils/exec"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// node is a server over one running pod "p" with the container "c".
type node struct {
	url     string
	runtime *streaming
	logFile string
	sandbox string
	id      string
}

// streaming adds streams to the fake: exec copies stdin to stdout, writes the
// command to stderr and ends with its first argument as the exit code.
type streaming struct{ *podstest.Runtime }

func (s *streaming) ExecStream(_ context.Context, _ string, cmd []string, in io.Reader, out, errOut io.WriteCloser, tty bool, _ <-chan criremote.TerminalSize) error {
	if in != nil {
		_, _ = io.Copy(out, in)
	}
	if errOut != nil {
		fmt.Fprintf(errOut, "ran %s tty=%v", strings.Join(cmd, " "), tty)
	}
	if cmd[0] == "0" {
		return nil
	}
	return utilexec.CodeExitError{Err: errors.New("exit"), Code: 7}
}

func (s *streaming) AttachStream(ctx context.Context, id string, in io.Reader, out, errOut io.WriteCloser, tty bool, r <-chan criremote.TerminalSize) error {
	return s.ExecStream(ctx, id, []string{"0"}, in, out, errOut, tty, r)
}

func (s *streaming) PortForwardStream(_ context.Context, _ string, port int32, stream io.ReadWriteCloser) error {
	buf := make([]byte, 4)
	if _, err := io.ReadFull(stream, buf); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stream, "%s from %d", buf, port)
	return err
}

type onePod struct{ pod *corev1.Pod }

func (p onePod) Pods() []*corev1.Pod { return []*corev1.Pod{p.pod} }

func (p onePod) Pod(namespace, name string) (*corev1.Pod, bool) {
	return p.pod, namespace == p.pod.Namespace && name == p.pod.Name
}

func newNode(t *testing.T) *node {
	t.Helper()
	dir := t.TempDir()
	rt := &streaming{podstest.New(map[string]podstest.Program{"web": {}})}
	ctx := t.Context()
	sandbox, err := rt.RunPodSandbox(ctx, &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "p", Uid: "u"}, Labels: labels("")}, "")
	if err != nil {
		t.Fatal(err)
	}
	n := &node{runtime: rt, sandbox: sandbox}
	n.id = n.create(t, "c", 0)
	if err := rt.StartContainer(ctx, n.id); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}, {Name: "later"}}}}
	dirs := podconfig.Dirs{Root: dir}
	srv := httptest.NewServer(newServer(Config{NodeName: "n1", Runtime: rt, Pods: onePod{pod}, Dirs: dirs, RuntimeName: "setpoint"}).handler())
	t.Cleanup(srv.Close)
	n.url, n.logFile = srv.URL, filepath.Join(dirs.PodLogs(pod), podconfig.LogPath("c", 0))
	if err := os.MkdirAll(filepath.Dir(n.logFile), 0o755); err != nil {
		t.Fatal(err)
	}
	return n
}

// labels are those of the pod's sandbox or, if it is named, of one of its containers.
func labels(container string) map[string]string {
	return map[string]string{observed.LabelPodUID: "u", observed.LabelPodName: "p", observed.LabelPodNamespace: "ns", observed.LabelContainerName: container}
}

// create makes an incarnation of a container that has not started, and returns its id.
func (n *node) create(t *testing.T, name string, attempt uint32) string {
	t.Helper()
	config := &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: attempt},
		Image:    &runtimeapi.ImageSpec{}, Labels: labels(name),
	}
	id, err := n.runtime.CreateContainer(t.Context(), n.sandbox, config, nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (n *node) get(t *testing.T, path string) (int, string) {
	t.Helper()
	resp, err := http.Get(n.url + path)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

const sampleLog = `2026-01-01T00:00:01.000000000Z stdout F one
2026-01-01T00:00:02.000000000Z stderr F two
2026-01-01T00:00:03.000000000Z stdout P thr
2026-01-01T00:00:03.000000001Z stdout F ee
2026-01-01T00:00:04.000000000Z stdout F four
`

func TestLogs(t *testing.T) {
	n := newNode(t)
	if err := os.WriteFile(n.logFile, []byte(sampleLog), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, query string
		code        int
		want        string
	}{
		{"all", "", 200, "one\ntwo\nthree\nfour\n"},
		{"tail", "?tailLines=1", 200, "four\n"},
		{"tail nothing", "?tailLines=0", 200, ""},
		{"limit", "?limitBytes=6", 200, "one\ntw"},
		{"since", "?sinceTime=2026-01-01T00:00:02Z", 200, "two\nthree\nfour\n"},
		{"since seconds", "?sinceSeconds=1", 200, ""},
		{"timestamps", "?timestamps=true&tailLines=1", 200, "2026-01-01T00:00:04.000000000Z four\n"},
		{"stderr", "?stream=Stderr", 200, "two\n"},
		{"bad number", "?tailLines=-1", 400, "invalid tailLines: \"-1\"\n"},
		{"bad time", "?sinceTime=noon", 400, "invalid sinceTime: \"noon\"\n"},
		{"no previous", "?previous=true", 400, "previous terminated container \"c\" in pod \"p\" not found\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			code, body := n.get(t, "/containerLogs/ns/p/c"+tc.query)
			if code != tc.code || body != tc.want {
				t.Errorf("got %d %q, want %d %q", code, body, tc.code, tc.want)
			}
		})
	}
}

func TestLogsOfWhatIsNotThere(t *testing.T) {
	n := newNode(t)
	for path, want := range map[string]int{
		"/containerLogs/ns/other/c": 404, "/containerLogs/ns/p/other": 404, "/containerLogs/ns/p/later": 400, "/nowhere": 404,
	} {
		if code, body := n.get(t, path); code != want {
			t.Errorf("%s: %d %q, want %d", path, code, body, want)
		}
	}
}

// TestLogsOfAContainerThatHasNotStarted: it has no log yet, so what is there is that of
// the incarnation before, or nothing.
func TestLogsOfAContainerThatHasNotStarted(t *testing.T) {
	n := newNode(t)
	if err := os.WriteFile(n.logFile, []byte(sampleLog), 0o644); err != nil {
		t.Fatal(err)
	}
	n.create(t, "later", 0)
	for _, query := range []string{"", "?follow=true"} {
		if code, body := n.get(t, "/containerLogs/ns/p/later"+query); code != 400 || !strings.Contains(body, "waiting to start") {
			t.Errorf("%q: %d %q", query, code, body)
		}
	}
	n.runtime.Crash("c", 1)
	n.create(t, "c", 1)
	if code, body := n.get(t, "/containerLogs/ns/p/c?tailLines=1"); code != 200 || body != "four\n" {
		t.Errorf("between two runs: %d %q", code, body)
	}
}

func TestFollowEndsWithTheContainer(t *testing.T) {
	n := newNode(t)
	if err := os.WriteFile(n.logFile, []byte(sampleLog), 0o644); err != nil {
		t.Fatal(err)
	}
	resp, err := http.Get(n.url + "/containerLogs/ns/p/c?follow=true&tailLines=1")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	first := make([]byte, len("four\n"))
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "four\n" {
		t.Fatalf("first line %q, %v", first, err)
	}
	f, err := os.OpenFile(n.logFile, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(f, "2026-01-01T00:00:05.000000000Z stdout F five")
	f.Close()
	n.runtime.Crash("c", 0)
	rest, err := io.ReadAll(resp.Body)
	if err != nil || string(rest) != "five\n" {
		t.Errorf("rest %q, %v", rest, err)
	}
}

func (n *node) execURL(t *testing.T, verb string, query url.Values) *url.URL {
	t.Helper()
	u, err := url.Parse(n.url + "/" + verb + "/ns/p/c?" + query.Encode())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestExec(t *testing.T) {
	n := newNode(t)
	for _, tc := range []struct {
		name string
		cmd  []string
		code int
	}{{"success", []string{"0", "arg"}, 0}, {"exit code", []string{"7"}, 7}} {
		t.Run(tc.name, func(t *testing.T) {
			u := n.execURL(t, "exec", url.Values{"command": tc.cmd, "input": {"1"}, "output": {"1"}, "error": {"1"}})
			executor, err := remotecommand.NewSPDYExecutor(&rest.Config{}, "POST", u)
			if err != nil {
				t.Fatal(err)
			}
			var out, errOut bytes.Buffer
			err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("hello"), Stdout: &out, Stderr: &errOut})
			if exit, ok := errors.AsType[utilexec.ExitError](err); tc.code != 0 && (!ok || exit.ExitStatus() != tc.code) {
				t.Errorf("err = %v, want exit code %d", err, tc.code)
			} else if tc.code == 0 && err != nil {
				t.Error(err)
			}
			if out.String() != "hello" || errOut.String() != "ran "+strings.Join(tc.cmd, " ")+" tty=false" {
				t.Errorf("stdout %q, stderr %q", out.String(), errOut.String())
			}
		})
	}
}

func TestAttach(t *testing.T) {
	n := newNode(t)
	u := n.execURL(t, "attach", url.Values{"input": {"1"}, "output": {"1"}})
	executor, err := remotecommand.NewSPDYExecutor(&rest.Config{}, "POST", u)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdin: strings.NewReader("hi"), Stdout: &out}); err != nil || out.String() != "hi" {
		t.Errorf("out %q, %v", out.String(), err)
	}
}

func TestExecRefusals(t *testing.T) {
	n := newNode(t)
	if code, _ := n.get(t, "/exec/ns/p/c?command=x"); code != 400 {
		t.Errorf("without streams: %d, want 400", code)
	}
	if code, _ := n.get(t, "/exec/ns/p/wrong-uid/c?command=x&output=1"); code != 404 {
		t.Errorf("wrong uid: %d, want 404", code)
	}
	n.runtime.Crash("c", 0)
	if code, _ := n.get(t, "/exec/ns/p/c?command=x&output=1"); code != 404 {
		t.Errorf("dead container: %d, want 404", code)
	}
}

func TestPortForward(t *testing.T) {
	n := newNode(t)
	u, err := url.Parse(n.url + "/portForward/ns/p")
	if err != nil {
		t.Fatal(err)
	}
	transport, upgrader, err := spdy.RoundTripperFor(&rest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	stop, ready := make(chan struct{}), make(chan struct{})
	fw, err := portforward.New(spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", u), []string{"0:8080"}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- fw.ForwardPorts() }()
	<-ready
	ports, err := fw.GetPorts()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", ports[0].Local))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(conn, "ping")
	answer := make([]byte, len("ping from 8080"))
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "ping from 8080" {
		t.Errorf("answer %q, %v", answer, err)
	}
	conn.Close()
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestSmallEndpoints(t *testing.T) {
	n := newNode(t)
	if code, body := n.get(t, "/healthz"); code != 200 || body != "ok" {
		t.Errorf("healthz: %d %q", code, body)
	}
	if code, body := n.get(t, "/pods"); code != 200 || !strings.Contains(body, `"kind":"PodList"`) || !strings.Contains(body, `"uid":"u"`) {
		t.Errorf("pods: %d %q", code, body)
	}
	if code, body := n.get(t, "/configz"); code != 200 || body != `{"kubeletconfig":{}}`+"\n" {
		t.Errorf("configz: %d %q", code, body)
	}
	if code, body := n.get(t, "/metrics"); code != 200 || !strings.Contains(body, "kubelet_running_pods 1") {
		t.Errorf("metrics: %d", code)
	}
}

func TestProfiles(t *testing.T) {
	n := newNode(t)
	for path, want := range map[string]string{"": "goroutine", "/": "goroutine", "/goroutine?debug=1": "goroutine profile: total", "/cmdline": "test"} {
		if code, body := n.get(t, "/debug/pprof"+path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%q: %d %q", path, code, body)
		}
	}
	without := newServer(Config{NoProfiles: true}).handler()
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap"} {
		w := httptest.NewRecorder()
		without.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != http.StatusNotFound {
			t.Errorf("turned off, %s: %d", path, w.Code)
		}
	}
}

func TestSummaryRatesComeFromTwoSamples(t *testing.T) {
	s := newServer(Config{NodeName: "n1", Runtime: podstest.New(nil), Pods: onePod{&corev1.Pod{}}, Dirs: podconfig.Dirs{Root: t.TempDir()}})
	read := func(second, cpuSeconds int64) sample {
		return sample{use: reading{containers: map[string]*runtimeapi.ContainerStats{"x": {
			Attributes: &runtimeapi.ContainerAttributes{Id: "x", Metadata: &runtimeapi.ContainerMetadata{Name: "c"}, Labels: map[string]string{observed.LabelPodUID: "u", observed.LabelPodName: "p"}},
			Cpu:        &runtimeapi.CpuUsage{Timestamp: second * 1e9, UsageCoreNanoSeconds: &runtimeapi.UInt64Value{Value: uint64(cpuSeconds) * 1e9}},
			Memory:     &runtimeapi.MemoryUsage{WorkingSetBytes: &runtimeapi.UInt64Value{Value: 4096}},
		}}}}
	}
	s.samples.add(read(100, 10))
	get := func() stats.Summary {
		rec := httptest.NewRecorder()
		s.summary(rec, httptest.NewRequest("GET", "/stats/summary", nil))
		var out stats.Summary
		if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
		return out
	}
	if first := get(); first.Pods[0].CPU.UsageNanoCores != nil {
		t.Error("one sample cannot give a rate")
	}
	s.samples.add(read(110, 15))
	got := get()
	if cpu := got.Pods[0].CPU.UsageNanoCores; cpu == nil || *cpu != 5e8 {
		t.Errorf("rate = %v, want half a core", cpu)
	}
	if fs := got.Node.Fs; fs == nil || *fs.CapacityBytes == 0 || got.Node.Rlimit == nil || *got.Node.Rlimit.MaxPID == 0 {
		t.Errorf("the machine: %+v", got.Node)
	}
	if *got.Node.Memory.WorkingSetBytes != 4096 || got.Pods[0].PodRef.Name != "p" {
		t.Errorf("summary = %+v", got)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	rt := podstest.New(nil)
	go func() { done <- Run(ctx, l, Config{Runtime: rt, Pods: onePod{&corev1.Pod{}}}) }()
	resp, err := http.Get("http://" + l.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	cancel()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("Run did not end")
	}
}

func TestClientsWithoutACertificateAreRefused(t *testing.T) {
	cert := httptest.NewUnstartedServer(nil)
	cert.StartTLS() // for its self-signed certificate only
	defer cert.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	cfg := &tls.Config{Certificates: cert.TLS.Certificates, ClientAuth: tls.RequireAndVerifyClientCert}
	go func() {
		done <- Run(ctx, l, Config{Runtime: podstest.New(nil), Pods: onePod{&corev1.Pod{}}, TLS: cfg})
	}()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	if resp, err := client.Get("https://" + l.Addr().String() + "/pods"); err == nil {
		resp.Body.Close()
		t.Errorf("answered %s", resp.Status)
	}
	cancel()
	<-done
}
