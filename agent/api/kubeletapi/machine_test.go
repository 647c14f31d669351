package kubeletapi

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

func writeProc(t *testing.T, stat, meminfo string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"stat": stat, "meminfo": meminfo} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const goodMemory = "MemTotal:        1000 kB\nMemFree:          300 kB\nMemAvailable:     600 kB\nInactive(file):   200 kB\nHugePages_Total:       0\n"

func TestMachineUse(t *testing.T) {
	const stat = "cpu  100 20 30 9000 800 4 5 77 50 1\ncpu0 100 20 30 9000 800 4 5 77 50 1\n"
	m, err := readMachine(writeProc(t, stat, goodMemory), time.Time{})
	if err != nil || m.nanoseconds != 159*nanosecondsPerTick || m.memory != 500<<10 {
		t.Errorf("%+v, %v", m, err)
	}
	for name, c := range map[string][2]string{
		"no CPU":          {"intr 1 2 3 4 5 6 7 8\n", goodMemory},
		"few columns":     {"cpu 1 2 3\n", goodMemory},
		"a negative":      {"cpu -1 2 3 4 5 6 7 8\n", goodMemory},
		"no memory":       {stat, "MemFree: 3 kB\n"},
		"more than it is": {stat, "MemTotal: 3 kB\nMemFree: 4 kB\n"},
	} {
		if m, err := readMachine(writeProc(t, c[0], c[1]), time.Time{}); err == nil {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if m, err := readMachine("/proc", time.Now()); err != nil || m.nanoseconds == 0 || m.memory == 0 {
		t.Errorf("this machine: %+v, %v", m, err)
	}
}

// TestSummaryOfTheMachine: the node's figures are those of the whole machine where they can be read.
func TestSummaryOfTheMachine(t *testing.T) {
	s := newServer(Config{NodeName: "n1", Runtime: podstest.New(nil), Pods: onePod{&corev1.Pod{}}, Dirs: podconfig.Dirs{Root: t.TempDir()}})
	get := func() stats.NodeStats {
		rec := httptest.NewRecorder()
		s.summary(rec, httptest.NewRequest("GET", "/stats/summary", nil))
		var out stats.Summary
		if err := json.Unmarshal(rec.Body.Bytes(), &out); err != nil {
			t.Fatal(err)
		}
		return out.Node
	}
	begin := time.Now()
	s.samples.add(sample{machine: &machineUse{begin, 10e9, 4096}})
	if n := get(); n.CPU.UsageNanoCores != nil || *n.CPU.UsageCoreNanoSeconds != 10e9 || *n.Memory.WorkingSetBytes != 4096 {
		t.Errorf("%+v", n.CPU)
	}
	s.samples.add(sample{machine: &machineUse{begin.Add(10 * time.Second), 15e9, 8192}})
	if n := get(); n.CPU.UsageNanoCores == nil || *n.CPU.UsageNanoCores != 5e8 || *n.Memory.WorkingSetBytes != 8192 {
		t.Errorf("%+v", n.CPU)
	}
	s.samples.add(sample{}) // it cannot be read any more
	if n := get(); n.CPU != nil || n.Memory != nil {
		t.Errorf("%+v", n)
	}
}
