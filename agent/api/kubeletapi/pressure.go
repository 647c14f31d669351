package kubeletapi

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// pressureOf reads how long the machine's processes waited for cpu, memory or io; nil on kernels that do not tell.
func pressureOf(proc, what string) *stats.PSIStats {
	text, err := os.ReadFile(filepath.Join(proc, "pressure", what))
	if err != nil {
		return nil
	}
	out := &stats.PSIStats{}
	for line := range strings.Lines(string(text)) { // some avg10=0.00 avg60=0.00 avg300=0.00 total=0
		kind, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch kind {
		case "some":
			out.Some = pressureLine(rest)
		case "full":
			out.Full = pressureLine(rest)
		}
	}
	return out
}

const nanosecondsPerMicrosecond = 1000

func pressureLine(text string) (d stats.PSIData) {
	for _, field := range strings.Fields(text) {
		name, value, _ := strings.Cut(field, "=")
		switch f, err := strconv.ParseFloat(value, 64); {
		case err != nil:
		case name == "total":
			d.Total = uint64(f) * nanosecondsPerMicrosecond
		case name == "avg10":
			d.Avg10 = f
		case name == "avg60":
			d.Avg60 = f
		case name == "avg300":
			d.Avg300 = f
		}
	}
	return d
}

// psiOf is what the runtime tells of a container or pod; nil if it does not.
func psiOf(told *runtimeapi.PsiStats) *stats.PSIStats {
	if told == nil {
		return nil
	}
	return &stats.PSIStats{Full: psiData(told.Full), Some: psiData(told.Some)}
}

func psiData(d *runtimeapi.PsiData) stats.PSIData {
	return stats.PSIData{Total: d.GetTotal(), Avg10: d.GetAvg10(), Avg60: d.GetAvg60(), Avg300: d.GetAvg300()}
}

func ioOf(told *runtimeapi.IoUsage) *stats.IOStats {
	if told.GetPsi() == nil {
		return nil
	}
	return &stats.IOStats{Time: metav1.NewTime(time.Unix(0, told.Timestamp)), PSI: psiOf(told.Psi)}
}

// podPressure is the whole pod's: it cannot be added up from its containers.
func podPressure(p *stats.PodStats, whole *runtimeapi.LinuxPodSandboxStats) {
	if p.CPU != nil {
		p.CPU.PSI = psiOf(whole.GetCpu().GetPsi())
	}
	if p.Memory != nil {
		p.Memory.PSI = psiOf(whole.GetMemory().GetPsi())
	}
	p.IO = ioOf(whole.GetIo())
}

// pressure adds cAdvisor's series of one resource: some tasks waited, or all of them stalled.
func (k *sink) pressure(resource string, psi *stats.PSIStats, at time.Time, l series) {
	if psi == nil {
		return
	}
	name := "container_pressure_" + resource
	k.put(name+"_waiting_seconds_total", "Total time duration tasks in the container have waited due to "+resource+" congestion.",
		prometheus.CounterValue, float64(psi.Some.Total)/nanosecondsPerSecond, at, l)
	k.put(name+"_stalled_seconds_total", "Total time duration no tasks in the container could make progress due to "+resource+" congestion.",
		prometheus.CounterValue, float64(psi.Full.Total)/nanosecondsPerSecond, at, l)
}
