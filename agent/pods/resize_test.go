package pods

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
)

// amounts are CPU and memory; "" leaves one out.
func amounts(cpu, memory string) corev1.ResourceList {
	list := corev1.ResourceList{}
	if cpu != "" {
		list[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		list[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return list
}

func both(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: amounts(cpu, memory), Limits: amounts(cpu, memory)}
}

// resize changes the spec as the API's resize subresource does.
func (w *world) resize(name string, of ...corev1.ResourceRequirements) {
	w.t.Helper()
	p := w.get(name)
	p.Generation++
	for i := range of {
		p.Spec.Containers[i].Resources = of[i]
	}
	if _, err := w.client.CoreV1().Pods(p.Namespace).Update(w.t.Context(), p, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

// limits are the calls that set some, since the world began.
func (w *world) limits() []string {
	return slices.DeleteFunc(w.runtime.Calls(), func(c string) bool { return !strings.HasPrefix(c, "limit ") })
}

func (w *world) expectResized(name string, want ...corev1.ResourceRequirements) {
	w.t.Helper()
	p := w.get(name)
	for i := range want {
		s := p.Status.ContainerStatuses[i]
		if !sameResources(s.Resources, &want[i]) || !sameResources(&corev1.ResourceRequirements{Requests: s.AllocatedResources}, &corev1.ResourceRequirements{Requests: want[i].Requests}) {
			w.t.Errorf("%s has %v, allocated %v, want %v", s.Name, s.Resources, s.AllocatedResources, want[i])
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodResizePending || c.Type == corev1.PodResizeInProgress {
			w.t.Errorf("still %+v", c)
		}
	}
}

func conditionOf(p *corev1.Pod, kind corev1.PodConditionType) corev1.PodCondition {
	for _, c := range p.Status.Conditions {
		if c.Type == kind {
			return c
		}
	}
	return corev1.PodCondition{}
}

// TestResizeInPlace: the pod's cgroup grows before its containers' and shrinks after them; the runtime of the test
// refuses anything else.
func TestResizeInPlace(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		p := newPod("p", "web", "web")
		p.Spec.Containers[0].Resources, p.Spec.Containers[1].Resources = both("100m", "64Mi"), both("100m", "64Mi")
		w.create(p)
		w.expectResized("p", both("100m", "64Mi"), both("100m", "64Mi"))
		w.resize("p", both("300m", "128Mi"), both("200m", "64Mi"))
		w.expectResized("p", both("300m", "128Mi"), both("200m", "64Mi"))
		w.resize("p", both("50m", "32Mi"), both("300m", "64Mi")) // one grows into what the other leaves
		w.expectResized("p", both("50m", "32Mi"), both("300m", "64Mi"))
		want := []string{
			"limit pod cpu=50000 memory=201326592",
			"limit c0 cpu=30000 memory=134217728", "limit c1 cpu=20000 memory=67108864",
			"limit c0 cpu=5000 memory=33554432", "limit c1 cpu=30000 memory=67108864",
			"limit pod cpu=35000 memory=100663296",
		}
		if got := w.limits(); !slices.Equal(got, want) {
			t.Errorf("calls\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for _, c := range w.get("p").Status.ContainerStatuses {
			if c.RestartCount != 0 {
				t.Errorf("%s was restarted", c.Name)
			}
		}
		for _, e := range []string{"ResizeStarted Pod resize started: {", "ResizeCompleted Pod resize completed: {"} {
			if !w.events.has(e) {
				t.Errorf("no event %q in\n%s", e, w.events)
			}
		}
	})
}

// TestResizeByRestart: a resource whose policy asks for it restarts its container, at once and whatever the pod's
// policy makes of its exit code; other changes of the same container do not.
func TestResizeByRestart(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {StopsAfter: time.Second}}, func(w *world) {
		p := newPod("p", "web")
		p.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
		p.Spec.Containers[0].Resources = both("100m", "64Mi")
		p.Spec.Containers[0].ResizePolicy = []corev1.ContainerResizePolicy{{ResourceName: corev1.ResourceMemory, RestartPolicy: corev1.RestartContainer}}
		w.create(p)
		w.resize("p", both("200m", "64Mi"))
		if n := w.get("p").Status.ContainerStatuses[0].RestartCount; n != 0 {
			t.Errorf("%d restarts for CPU", n)
		}
		for i, memory := range []string{"128Mi", "96Mi", "256Mi"} {
			w.resize("p", both("400m", memory))
			time.Sleep(2 * time.Second)
			w.settle()
			w.expectResized("p", both("400m", memory))
			if n := w.get("p").Status.ContainerStatuses[0].RestartCount; int(n) != i+1 {
				t.Errorf("%d restarts after %d changes of memory", n, i+1)
			}
		}
		if !w.events.has("Killing Container c0 resize requires restart") {
			t.Error(w.events)
		}
	})
}

// TestResizeWaitsForRoom: what the node has not got is deferred, tells why, and is given in the order of priority when
// others leave. What wants less never waits.
func TestResizeWaitsForRoom(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) { // the node has 4 CPUs
		create := func(name, cpu string, priority int32) {
			p := newPod(name, "web")
			p.Spec.Containers[0].Resources, p.Spec.Priority = both(cpu, "64Mi"), &priority
			w.create(p)
		}
		create("big", "2", 0)
		create("low", "500m", 1)
		create("high", "500m", 2)
		w.resize("low", both("2", "64Mi"))
		w.resize("high", both("2", "64Mi"))
		for _, name := range []string{"low", "high"} {
			c := conditionOf(w.get(name), corev1.PodResizePending)
			if c.Reason != corev1.PodReasonDeferred || c.ObservedGeneration != 2 ||
				c.Message != "Node didn't have enough resource: cpu, requested: 2000, used: 2500, capacity: 4000" {
				t.Errorf("%s: %+v", name, c)
			}
		}
		create("late", "600m", 0) // what is deferred keeps no room
		if got := w.get("late").Status.Phase; got != corev1.PodRunning {
			t.Errorf("late is %s", got)
		}
		w.resize("big", both("1", "64Mi"))
		w.expectResized("big", both("1", "64Mi"))
		if c := conditionOf(w.get("low"), corev1.PodResizePending); c.Reason != corev1.PodReasonDeferred {
			t.Errorf("low came before high: %+v", c)
		}
		w.delete("late", 0)
		time.Sleep(time.Minute)
		w.expectResized("high", both("2", "64Mi"))
	})
}

// TestResizeErrors are told, and tried again.
func TestResizeErrors(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		p := newPod("p", "web")
		p.Spec.Containers[0].Resources = both("100m", "64Mi")
		w.create(p)
		w.runtime.UsesMemory("c0", 48<<20)
		w.resize("p", both("100m", "32Mi"))
		c := conditionOf(w.get("p"), corev1.PodResizeInProgress)
		if c.Reason != corev1.PodReasonError || !strings.Contains(c.Message, `attempting to set container "c0" memory limit (33554432) below current usage (50331648)`) {
			t.Errorf("%+v", c)
		}
		if len(w.limits()) > 0 {
			t.Error("limits were changed although the memory is in use: ", w.limits())
		}
		w.runtime.UsesMemory("c0", 16<<20)
		time.Sleep(resizeRetry)
		w.settle()
		w.expectResized("p", both("100m", "32Mi"))
		w.runtime.FailUpdates(errors.New("no such cgroup"))
		w.resize("p", both("200m", "32Mi"))
		if c := conditionOf(w.get("p"), corev1.PodResizeInProgress); c.Reason != corev1.PodReasonError || !strings.Contains(c.Message, "container c0: no such cgroup") {
			t.Errorf("%+v", c)
		}
		if has := w.get("p").Status.ContainerStatuses[0]; has.Resources.Limits.Cpu().String() != "100m" || has.AllocatedResources.Cpu().String() != "200m" {
			t.Errorf("has %v, was allocated %v", has.Resources, has.AllocatedResources)
		}
		w.stopAgent() // the next agent knows what is left to do
		w.runtime.FailUpdates(nil)
		w.startAgent()
		w.settle()
		w.expectResized("p", both("200m", "32Mi"))
	})
}

// TestAllocationsOutliveTheAgent: one that starts again neither gives what was deferred nor takes what was given.
func TestAllocationsOutliveTheAgent(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		for _, name := range []string{"a", "b"} {
			p := newPod(name, "web")
			p.Spec.Containers[0].Resources = both("1500m", "64Mi")
			w.create(p)
		}
		w.resize("a", both("2", "64Mi"))
		w.resize("b", both("3", "64Mi"))
		before := w.limits()
		w.stopAgent()
		w.startAgent()
		w.settle()
		w.expectResized("a", both("2", "64Mi"))
		if c := conditionOf(w.get("b"), corev1.PodResizePending); c.Reason != corev1.PodReasonDeferred {
			t.Errorf("b: %+v", c)
		}
		if got := w.get("b").Status.ContainerStatuses[0].AllocatedResources; got.Cpu().String() != "1500m" {
			t.Errorf("b has %v", got)
		}
		if after := w.limits(); !slices.Equal(before, after) {
			t.Errorf("the new agent set limits again: %v", after[len(before):])
		}
		w.resize("b", both("1500m", "64Mi"))
		w.expectResized("b", both("1500m", "64Mi"))
	})
}
