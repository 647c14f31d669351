package kubeletapi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
	"github.com/setpoint-io/setpoint/agent/pods/probes"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

func number(n uint64) *runtimeapi.UInt64Value { return &runtimeapi.UInt64Value{Value: n} }

// measured is a runtime with one pod of one container, whose CPU ran for 2 s; a simple one knows containers only.
type measured struct{ simple bool }

func (m measured) container() *runtimeapi.ContainerStats {
	return &runtimeapi.ContainerStats{
		Attributes: &runtimeapi.ContainerAttributes{Id: "x", Metadata: &runtimeapi.ContainerMetadata{Name: "c"}, Labels: map[string]string{
			observed.LabelPodUID: "u", observed.LabelPodName: "p", observed.LabelPodNamespace: "d"}},
		Cpu:           &runtimeapi.CpuUsage{Timestamp: 100e9, UsageCoreNanoSeconds: number(2e9)},
		Memory:        &runtimeapi.MemoryUsage{Timestamp: 100e9, WorkingSetBytes: number(4096), RssBytes: number(1024), PageFaults: number(7)},
		WritableLayer: &runtimeapi.FilesystemUsage{Timestamp: 100e9, UsedBytes: number(512), InodesUsed: number(3)},
	}
}

func (m measured) ListContainerStats(context.Context, *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	return []*runtimeapi.ContainerStats{m.container()}, nil
}

func (m measured) ListPodSandboxStats(context.Context, *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	if m.simple {
		return nil, http.ErrNotSupported
	}
	interfaces := []*runtimeapi.NetworkInterfaceUsage{{Name: "eth0", RxBytes: number(10), TxBytes: number(20), RxErrors: number(1), TxErrors: number(2)}}
	return []*runtimeapi.PodSandboxStats{{
		Attributes: &runtimeapi.PodSandboxAttributes{Labels: map[string]string{observed.LabelPodUID: "u"}},
		Linux: &runtimeapi.LinuxPodSandboxStats{
			Cpu:     &runtimeapi.CpuUsage{Timestamp: 100e9, UsageCoreNanoSeconds: number(3e9)},
			Memory:  &runtimeapi.MemoryUsage{Timestamp: 100e9, WorkingSetBytes: number(8192)},
			Network: &runtimeapi.NetworkUsage{Timestamp: 100e9, DefaultInterface: interfaces[0], Interfaces: interfaces},
			Process: &runtimeapi.ProcessUsage{Timestamp: 100e9, ProcessCount: number(5)}, Containers: []*runtimeapi.ContainerStats{m.container()},
		},
	}}, nil
}

// scrape reads a page as Prometheus does, and returns it.
func scrape(t *testing.T, s *server, path string) string {
	t.Helper()
	rec := httptest.NewRecorder()
	s.handler().ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
	parser := expfmt.NewTextParser(model.LegacyValidation)
	if _, err := parser.TextToMetricFamilies(strings.NewReader(rec.Body.String())); err != nil || rec.Code != http.StatusOK {
		t.Fatalf("%s: %d, %v\n%s", path, rec.Code, err, rec.Body)
	}
	return rec.Body.String()
}

func measuredServer(t *testing.T, m measured) *server {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "u"},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "web:1", Resources: corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Mi"), corev1.ResourceCPU: resource.MustParse("500m")}}}}},
		Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{ContainerID: "r://x", State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.Unix(50, 0)}}}}},
	}
	s := newServer(Config{NodeName: "n1", RuntimeName: "r", Runtime: podstest.New(nil), Pods: onePod{pod}, Dirs: podconfig.Dirs{Root: t.TempDir()}})
	now, err := readUse(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	s.samples.add(sample{use: now, machine: &machineUse{time.Unix(100, 0), 5e9, 1 << 20}})
	return s
}

func TestMetricsHaveUpstreamsNames(t *testing.T) {
	s := measuredServer(t, measured{})
	for path, want := range map[string][]string{
		"/metrics/resource": {
			"node_cpu_usage_seconds_total 5 100000", "node_memory_working_set_bytes 1.048576e+06 100000",
			`container_cpu_usage_seconds_total{container="c",namespace="d",pod="p"} 2 100000`,
			`container_memory_working_set_bytes{container="c",namespace="d",pod="p"} 4096 100000`,
			`container_start_time_seconds{container="c",namespace="d",pod="p"} 50`,
			`pod_cpu_usage_seconds_total{namespace="d",pod="p"} 3 100000`, `pod_memory_working_set_bytes{namespace="d",pod="p"} 8192 100000`,
			"resource_scrape_error 0",
		},
		"/metrics/cadvisor": {
			"machine_cpu_cores ", "machine_memory_bytes ",
			`container_cpu_usage_seconds_total{container="",cpu="total",id="/",image="",name="",namespace="",pod=""} 5 100000`,
			`container_cpu_usage_seconds_total{container="c",cpu="total",id="/kubepods/burstable/podu/x",image="web:1",name="x",namespace="d",pod="p"} 2 100000`,
			`container_memory_rss{container="c",id="/kubepods/burstable/podu/x",image="web:1",name="x",namespace="d",pod="p"} 1024 100000`,
			`container_memory_working_set_bytes{container="",id="/kubepods/burstable/podu",image="",name="",namespace="d",pod="p"} 8192 100000`,
			`container_network_receive_bytes_total{container="",id="/kubepods/burstable/podu",image="",interface="eth0",name="",namespace="d",pod="p"} 10 100000`,
			`container_spec_memory_limit_bytes{container="c",id="/kubepods/burstable/podu/x",image="web:1",name="x",namespace="d",pod="p"} 1.048576e+06`,
			`container_spec_cpu_quota{container="c",id="/kubepods/burstable/podu/x",image="web:1",name="x",namespace="d",pod="p"} 50000`,
			`container_fs_usage_bytes{container="c",device="",`, "container_processes{", `failure_type="pgfault"`, "container_last_seen{", "container_start_time_seconds{",
		},
	} {
		page := scrape(t, s, path)
		for _, line := range want {
			if !strings.Contains(page, line) {
				t.Errorf("%s lacks %s\n%s", path, line, page)
			}
		}
	}
}

// TestResourcePage holds a whole page: test/differential/lists compares it with upstream's stable metrics.
func TestResourcePage(t *testing.T) {
	want, err := os.ReadFile(filepath.Join("testdata", "resource.txt"))
	if got := scrape(t, measuredServer(t, measured{}), "/metrics/resource"); err != nil || got != string(want) {
		t.Errorf("%v; the page is\n%s", err, got)
	}
}

// TestASimpleRuntimeIsMeasuredByItsContainers: nothing is said of what it does not know.
func TestASimpleRuntimeIsMeasuredByItsContainers(t *testing.T) {
	s := measuredServer(t, measured{simple: true})
	if page := scrape(t, s, "/metrics/resource"); !strings.Contains(page, `pod_cpu_usage_seconds_total{namespace="d",pod="p"} 2 100000`) {
		t.Errorf("pods are not summed up:\n%s", page)
	}
	if page := scrape(t, s, "/metrics/cadvisor"); strings.Contains(page, "container_network") || strings.Contains(page, "container_processes") {
		t.Errorf("made up:\n%s", page)
	}
}

func TestProbesAreCounted(t *testing.T) {
	s := measuredServer(t, measured{})
	if page := scrape(t, s, "/metrics/probes"); page != "" {
		t.Errorf("without probes: %s", page)
	}
	s.ProbeCounts = func() map[probes.Count]uint64 {
		return map[probes.Count]uint64{{Kind: probes.Readiness, OK: true, Container: "c", Pod: "p", Namespace: "d", UID: "u"}: 3}
	}
	want := `prober_probe_total{container="c",namespace="d",pod="p",pod_uid="u",probe_type="Readiness",result="successful"} 3`
	if page := scrape(t, s, "/metrics/probes"); !strings.Contains(page, want) {
		t.Errorf("lacks %s:\n%s", want, page)
	}
}

func TestCheckpointsAreRefused(t *testing.T) {
	rec := httptest.NewRecorder()
	measuredServer(t, measured{}).handler().ServeHTTP(rec, httptest.NewRequest("POST", "/checkpoint/d/p/c", nil))
	if rec.Code != http.StatusNotImplemented || !strings.Contains(rec.Body.String(), "checkpointing of d/p/c not implemented") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}
