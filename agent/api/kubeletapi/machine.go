package kubeletapi

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/base/measure"
)

// nanosecondsPerTick is the unit of /proc/stat, a hundredth of a second on all architectures.
const nanosecondsPerTick = 10_000_000

// machineUse is what the whole machine has used: what does not run in pods, too, as a kubelet tells of its node.
type machineUse struct {
	at          time.Time
	nanoseconds uint64 // of CPU since the machine started
	memory      uint64 // working set in bytes
}

// readMachine reads a proc file system.
func readMachine(proc string, now time.Time) (*machineUse, error) {
	cpu, err := readCPU(filepath.Join(proc, "stat"))
	if err != nil {
		return nil, err
	}
	memory, err := measure.ReadMemory(proc)
	if err != nil {
		return nil, err
	}
	return &machineUse{now, cpu, uint64(memory.Total - memory.Available)}, nil
}

// readCPU adds up who worked: user, nice, system, irq and softirq. Guests are in user; idle, iowait and steal did not.
func readCPU(path string) (uint64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := strings.Fields(string(line))
	if len(fields) < 8 || fields[0] != "cpu" {
		return 0, fmt.Errorf("%s: %w", path, measure.ErrForm)
	}
	var ticks uint64
	for _, i := range []int{1, 2, 3, 6, 7} {
		n, err := strconv.ParseUint(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		ticks += n
	}
	return ticks * nanosecondsPerTick, nil
}

// stats is the machine's part of a summary, with the rate since the last reading, if there is one.
func (m *machineUse) stats(last *machineUse) (*stats.CPUStats, *stats.MemoryStats) {
	at := metav1.NewTime(m.at)
	cpu := &stats.CPUStats{Time: at, UsageCoreNanoSeconds: &m.nanoseconds}
	if last != nil && m.at.After(last.at) && m.nanoseconds >= last.nanoseconds {
		nanocores := uint64(float64(m.nanoseconds-last.nanoseconds) / m.at.Sub(last.at).Seconds())
		cpu.UsageNanoCores = &nanocores
	}
	return cpu, &stats.MemoryStats{Time: at, WorkingSetBytes: &m.memory}
}
