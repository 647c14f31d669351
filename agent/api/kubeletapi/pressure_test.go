package kubeletapi

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

func TestThePressureOfTheMachine(t *testing.T) {
	proc := t.TempDir()
	if err := os.Mkdir(filepath.Join(proc, "pressure"), 0o755); err != nil {
		t.Fatal(err)
	}
	const text = "some avg10=1.50 avg60=0.25 avg300=0.10 total=2000\nfull avg10=0.50 avg60=0.00 avg300=0.00 total=1000\n"
	if err := os.WriteFile(filepath.Join(proc, "pressure", "io"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	want := stats.PSIStats{
		Some: stats.PSIData{Avg10: 1.5, Avg60: .25, Avg300: .1, Total: 2_000_000}, Full: stats.PSIData{Avg10: .5, Total: 1_000_000},
	}
	if got := pressureOf(proc, "io"); got == nil || *got != want {
		t.Errorf("%+v", got)
	}
	if got := pressureOf(proc, "cpu"); got != nil {
		t.Errorf("a kernel that does not tell: %+v", got)
	}
}

// pressed are the figures of a container or pod whose tasks waited for as many seconds, and stalled for half of them.
func pressed(seconds uint64) *runtimeapi.PsiStats {
	return &runtimeapi.PsiStats{Some: &runtimeapi.PsiData{Total: seconds * 1e9, Avg10: 1.5}, Full: &runtimeapi.PsiData{Total: seconds * 5e8, Avg60: .5}}
}

// pressedServer has a container that waited 2, 4 and 6 seconds for its resources, in a pod that waited 10 times as long.
func pressedServer(t *testing.T) *server {
	t.Helper()
	s := measuredServer(t, measured{})
	c, p := s.samples.now.use.containers["x"], s.samples.now.use.pods["u"]
	c.Cpu.Psi, c.Memory.Psi, c.Io = pressed(2), pressed(4), &runtimeapi.IoUsage{Timestamp: 100e9, Psi: pressed(6)}
	p.Cpu.Psi, p.Memory.Psi, p.Io = pressed(20), pressed(40), &runtimeapi.IoUsage{Timestamp: 100e9, Psi: pressed(60)}
	return s
}

func TestThePressureOfPodsAndContainers(t *testing.T) {
	s := pressedServer(t)
	page := scrape(t, s, "/metrics/cadvisor")
	const container = `{container="c",id="/kubepods/burstable/podu/x",image="web:1",name="x",namespace="d",pod="p"}`
	const pod = `{container="",id="/kubepods/burstable/podu",image="",name="",namespace="d",pod="p"}`
	for _, line := range []string{
		"container_pressure_cpu_waiting_seconds_total" + container + " 2 100000", "container_pressure_cpu_stalled_seconds_total" + container + " 1 100000",
		"container_pressure_memory_waiting_seconds_total" + container + " 4", "container_pressure_io_stalled_seconds_total" + container + " 3",
		"container_pressure_cpu_waiting_seconds_total" + pod + " 20", "container_pressure_io_waiting_seconds_total" + pod + " 60",
	} {
		if !strings.Contains(page, line) {
			t.Errorf("lacks %s\n%s", line, page)
		}
	}
	rec := httptest.NewRecorder()
	s.handler().ServeHTTP(rec, httptest.NewRequest("GET", "/stats/summary", nil))
	var got stats.Summary
	if err := json.Unmarshal(rec.Body.Bytes(), &got); err != nil || len(got.Pods) != 1 {
		t.Fatalf("%v\n%s", err, rec.Body)
	}
	p, c := got.Pods[0], got.Pods[0].Containers[0]
	want := stats.PSIStats{Some: stats.PSIData{Total: 2e9, Avg10: 1.5}, Full: stats.PSIData{Total: 1e9, Avg60: .5}}
	if *c.CPU.PSI != want || c.Memory.PSI.Some.Total != 4e9 || c.IO.PSI.Full.Total != 3e9 || !c.IO.Time.Equal(&c.CPU.Time) {
		t.Errorf("of the container: %+v %+v %+v", c.CPU.PSI, c.Memory.PSI, c.IO)
	}
	if p.CPU.PSI.Some.Total != 20e9 || p.Memory.PSI.Some.Total != 40e9 || p.IO.PSI.Some.Total != 60e9 {
		t.Errorf("of the pod: %+v %+v %+v", p.CPU.PSI, p.Memory.PSI, p.IO)
	}
}

// TestAKernelThatDoesNotTell: nothing is made up.
func TestAKernelThatDoesNotTell(t *testing.T) {
	s := measuredServer(t, measured{})
	for line := range strings.Lines(scrape(t, s, "/metrics/cadvisor")) {
		if strings.HasPrefix(line, "container_pressure") && !strings.Contains(line, `id="/"`) {
			t.Error(line)
		}
	}
	p := &stats.PodStats{CPU: &stats.CPUStats{}}
	podPressure(p, nil)
	if p.CPU.PSI != nil || p.IO != nil || convert(nil, measured{}.container()).IO != nil {
		t.Errorf("%+v", p)
	}
}
