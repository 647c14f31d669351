package pods

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
)

// pins gives each pod CPU 1.
type pins struct {
	mu    sync.Mutex
	has   map[types.UID]bool
	freed []types.UID
	err   error
	kicks int
}

func (p *pins) Allocate(_ context.Context, pod *corev1.Pod) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.has[pod.UID] = true
	}
	return p.err
}

func (p *pins) Starting(*corev1.Pod, *corev1.Container) error { return nil }

func (p *pins) Pin(_ types.UID, _ string, to *runtimeapi.LinuxContainerResources) {
	to.CpusetCpus, to.CpusetMems, to.CpuQuota = "1", "0", -1
}

func (p *pins) PinPod(_ types.UID, to *runtimeapi.LinuxContainerResources) { to.CpuQuota = -1 }

func (p *pins) Reconcile() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kicks++
}

func (p *pins) StaticCPUs() bool   { return true }
func (p *pins) StaticMemory() bool { return true }

func (p *pins) Has(pod types.UID) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.has[pod]
}

func (p *pins) Free(pod types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.has[pod] {
		p.freed = append(p.freed, pod)
	}
	delete(p.has, pod)
}

func (p *pins) Retain(keep func(types.UID) bool) {
	p.mu.Lock()
	pods := []types.UID{}
	for pod := range p.has {
		pods = append(pods, pod)
	}
	p.mu.Unlock()
	for _, pod := range pods {
		if !keep(pod) {
			p.Free(pod)
		}
	}
}

// seen are the calls of Reconcile, and the pods that were freed.
func (p *pins) seen() (int, []types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kicks, slices.Clone(p.freed)
}

func withPins(t *testing.T, programs map[string]podstest.Program, p *pins, body func(w *world)) {
	p.has = map[types.UID]bool{"uid-of-yesterday": true}
	inBubble(t, programs, func(w *world) {
		w.stopAgent()
		w.pinning = p
		w.startAgent()
		body(w)
	})
}

// TestPinned: a container is made where it shall run, and what its pod has is given back when it has ended.
func TestPinned(t *testing.T) {
	p := &pins{}
	withPins(t, map[string]podstest.Program{"job": {ExitAfter: time.Minute}}, p, func(w *world) {
		pod := newPod("p", "job")
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		pod.Spec.Containers[0].Resources = both("1", "64Mi")
		w.create(pod)
		if r := w.runtime.Config("c0").Linux.Resources; r.CpusetCpus != "1" || r.CpusetMems != "0" || r.CpuQuota != -1 {
			t.Errorf("%v", r)
		}
		if kicks, freed := p.seen(); kicks == 0 || !slices.Equal(freed, []types.UID{"uid-of-yesterday"}) {
			t.Errorf("%d looks at the CPUs when a container has started; freed %v while it runs", kicks, freed)
		}
		time.Sleep(time.Minute)
		w.settle()
		if got := w.get("p").Status.Phase; got != corev1.PodSucceeded || p.Has("uid-p") {
			t.Errorf("%s, and it has its CPUs", got)
		}
	})
}

type reasoned struct{ error }

func (reasoned) Reason() string { return "TopologyAffinityError" }

// TestPodsThatCannotBePinned fail, with the reason of the error if it has one.
func TestPodsThatCannotBePinned(t *testing.T) {
	for want, err := range map[string]error{
		"TopologyAffinityError": reasoned{errors.New("Resources cannot be allocated with Topology locality")}, "UnexpectedAdmissionError": errors.New("no"),
	} {
		withPins(t, map[string]podstest.Program{"web": {}}, &pins{err: err}, func(w *world) {
			w.create(newPod("p", "web"))
			if got := w.get("p").Status; got.Phase != corev1.PodFailed || got.Reason != want || got.Message != "Pod was rejected: "+err.Error() {
				t.Errorf("%s %s %s", got.Phase, got.Reason, got.Message)
			}
		})
	}
}

// TestWhatIsPinnedIsNotResized: CPUs and memory of its own stay as they are, other pods' change.
func TestWhatIsPinnedIsNotResized(t *testing.T) {
	withPins(t, map[string]podstest.Program{"web": {}}, &pins{}, func(w *world) {
		pod := newPod("p", "web")
		pod.Spec.Containers[0].Resources = both("1", "64Mi")
		w.create(pod)
		w.resize("p", both("2", "64Mi"))
		const want = `Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"`
		if c := conditionOf(w.get("p"), corev1.PodResizePending); c.Reason != corev1.PodReasonInfeasible || c.Message != want {
			t.Errorf("%+v", c)
		}
		w.resize("p", both("1", "128Mi"))
		if c := conditionOf(w.get("p"), corev1.PodResizePending); c.Message != `Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"` {
			t.Errorf("%+v", c)
		}
		if !w.events.has("ResizeInfeasible Pod resize Infeasible: {") {
			t.Error(w.events)
		}
		w.resize("p", both("1", "64Mi"))
		w.expectResized("p", both("1", "64Mi"))
		burstable := newPod("q", "web")
		burstable.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: amounts("100m", "")}
		w.create(burstable)
		w.resize("q", corev1.ResourceRequirements{Requests: amounts("200m", "")})
		w.expectResized("q", corev1.ResourceRequirements{Requests: amounts("200m", "")})
	})
}
