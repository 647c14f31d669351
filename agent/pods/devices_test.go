package pods

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// dongles gives each pod one.
type dongles struct {
	mu    sync.Mutex
	has   map[types.UID]bool
	err   error
	hang  bool
	freed []types.UID
	// asked is what the container asks for that got its devices last.
	asked corev1.ResourceList
}

func (d *dongles) Manages(name corev1.ResourceName) bool { return name == "example.com/dongle" }

func (d *dongles) Allocate(ctx context.Context, pod *corev1.Pod) error {
	d.mu.Lock()
	hang, err := d.hang, d.err
	d.mu.Unlock()
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if err == nil {
		d.mu.Lock()
		d.has[pod.UID] = true
		d.mu.Unlock()
	}
	return err
}

func (d *dongles) Given(_ context.Context, _ *corev1.Pod, c *corev1.Container) (podconfig.Given, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = c.Resources.Limits
	return podconfig.Given{
		Envs:        []*runtimeapi.KeyValue{{Key: "DONGLE", Value: []byte("plugin's")}, {Key: "OWN", Value: []byte("plugin's")}},
		Devices:     []*runtimeapi.Device{{ContainerPath: "/dev/dongle", HostPath: "/dev/null", Permissions: "r"}},
		Annotations: map[string]string{"example.com/dongle": "1", "io.kubernetes.container.hash": "x"}, CDI: []string{"example.com/dongle=1"},
	}, nil
}

func (d *dongles) Status(pod types.UID, _ string) []corev1.ResourceStatus {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.has[pod] {
		return nil
	}
	return []corev1.ResourceStatus{{Name: "example.com/dongle"}}
}

func (d *dongles) Has(pod types.UID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.has[pod]
}

func (d *dongles) Free(pod types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.has[pod] {
		d.freed = append(d.freed, pod)
	}
	delete(d.has, pod)
}

func (d *dongles) Retain(keep func(types.UID) bool) {
	d.mu.Lock()
	var gone []types.UID
	for pod := range d.has {
		if !keep(pod) {
			gone = append(gone, pod)
		}
	}
	d.mu.Unlock()
	for _, pod := range gone {
		d.Free(pod)
	}
}

func (d *dongles) took() []types.UID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.freed)
}

// withDongles begins anew with an agent that has devices.
func withDongles(t *testing.T, programs map[string]podstest.Program, d *dongles, body func(w *world)) {
	d.has = map[types.UID]bool{}
	inBubble(t, programs, func(w *world) {
		w.stopAgent()
		w.devices = d
		w.startAgent()
		body(w)
	})
}

func TestAContainerGetsWhatItsDevicesGive(t *testing.T) {
	d := &dongles{}
	withDongles(t, map[string]podstest.Program{"web": {}}, d, func(w *world) {
		pod := newPod("p", "web")
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "OWN", Value: "pod's"}}
		w.create(pod)
		cfg := w.runtime.Config("c0")
		var own string
		for _, e := range cfg.Envs {
			if e.Key == "OWN" {
				own = string(e.Value) // the last one counts
			}
		}
		if own != "pod's" || cfg.Envs[0].Key != "DONGLE" || cfg.Devices[0].ContainerPath != "/dev/dongle" || cfg.CDIDevices[0].Name != "example.com/dongle=1" ||
			cfg.Annotations["example.com/dongle"] != "1" || cfg.Annotations["io.kubernetes.container.hash"] == "x" {
			t.Errorf("%v", cfg)
		}
		if got := w.get("p").Status.ContainerStatuses[0].AllocatedResourcesStatus; len(got) != 1 {
			t.Errorf("status %v", got)
		}
		if freed := d.took(); len(freed) != 0 {
			t.Errorf("freed %v", freed)
		}
	})
}

// TestAContainerThatRestartsAsksForItsDevices, also if another agent has started it.
func TestAContainerThatRestartsAsksForItsDevices(t *testing.T) {
	d := &dongles{}
	withDongles(t, map[string]podstest.Program{"web": {}}, d, func(w *world) {
		pod := newPod("p", "web")
		pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/dongle": resource.MustParse("1")}
		w.create(pod)
		w.stopAgent()
		d.asked = nil
		w.startAgent()
		w.runtime.Crash("c0", 1)
		time.Sleep(time.Minute)
		w.settle()
		asked := d.asked["example.com/dongle"]
		if got := w.get("p").Status.ContainerStatuses[0]; got.RestartCount != 1 || asked.Value() != 1 {
			t.Errorf("restarts %d, asked for %v", got.RestartCount, d.asked)
		}
	})
}

// TestDevicesAreFreeWhenThePodHasEnded, long before it is deleted.
func TestDevicesAreFreeWhenThePodHasEnded(t *testing.T) {
	d := &dongles{}
	withDongles(t, map[string]podstest.Program{"job": {ExitAfter: time.Minute}}, d, func(w *world) {
		pod := newPod("p", "job")
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
		w.create(pod)
		w.stopAgent()
		w.startAgent()
		w.settle()
		if freed := d.took(); len(freed) != 0 {
			t.Errorf("freed %v while it runs", freed)
		}
		time.Sleep(time.Minute)
		w.settle()
		if got := w.get("p").Status.Phase; got != corev1.PodSucceeded || !slices.Equal(d.took(), []types.UID{"uid-p"}) {
			t.Errorf("%s, freed %v", got, d.took())
		}
	})
}

// TestExtendedResourcesOfOthers: those that the Node lists are counted, those of plugins are not, and unknown ones are somebody else's.
func TestExtendedResourcesOfOthers(t *testing.T) {
	withDongles(t, map[string]podstest.Program{"web": {}}, &dongles{}, func(w *world) {
		w.manager.Allocatable = func() corev1.ResourceList {
			return corev1.ResourceList{"example.com/seat": resource.MustParse("2"), "example.com/dongle": resource.MustParse("0")}
		}
		create := func(name, resourceName string, amount string) corev1.PodStatus {
			p := newPod(name, "web")
			list := corev1.ResourceList{corev1.ResourceName(resourceName): resource.MustParse(amount)}
			p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: list, Limits: list}
			w.create(p)
			return w.get(name).Status
		}
		for i, fits := range []string{"example.com/seat", "example.com/dongle", "example.com/unknown"} {
			if got := create(fmt.Sprint("p", i), fits, "1"); got.Phase != corev1.PodRunning {
				t.Errorf("%s: %s %s", fits, got.Phase, got.Message)
			}
		}
		if got := create("q", "example.com/seat", "2"); got.Reason != "OutOfexample.com/seat" ||
			got.Message != "Pod was rejected: Node didn't have enough resource: example.com/seat, requested: 2, used: 1, capacity: 2" {
			t.Errorf("%s %s %s", got.Phase, got.Reason, got.Message)
		}
	})
}

func TestAPodWithoutItsDevicesFails(t *testing.T) {
	d := &dongles{err: errors.New("Allocate failed due to too few, which is unexpected")}
	withDongles(t, map[string]podstest.Program{"web": {}}, d, func(w *world) {
		w.create(newPod("p", "web"))
		got := w.get("p").Status
		if got.Phase != corev1.PodFailed || got.Reason != "UnexpectedAdmissionError" ||
			got.Message != "Pod was rejected: Allocate failed due to too few, which is unexpected" {
			t.Errorf("%s %s %s", got.Phase, got.Reason, got.Message)
		}
		if calls := w.runtime.Calls(); len(calls) != 0 {
			t.Errorf("something of it ran: %v", calls)
		}
	})
}

// TestAPodThatHasRunWaitsForItsDevices: after the machine has started anew the plugin may come later.
func TestAPodThatHasRunWaitsForItsDevices(t *testing.T) {
	d := &dongles{}
	withDongles(t, map[string]podstest.Program{"web": {}}, d, func(w *world) {
		w.create(newPod("p", "web"))
		w.stopAgent()
		w.runtime.Reboot()
		d.err = errors.New("no plugin")
		w.startAgent()
		w.settle()
		if got := w.get("p").Status.Phase; got == corev1.PodFailed || !w.events.has("UnexpectedAdmissionError no plugin") {
			t.Errorf("%s, events:\n%s", got, w.events)
		}
		d.mu.Lock()
		d.err = nil
		d.mu.Unlock()
		time.Sleep(startRetryMax)
		w.settle()
		if got := w.get("p").Status; got.Phase != corev1.PodRunning || got.ContainerStatuses[0].State.Running == nil {
			t.Errorf("%s", got.Phase)
		}
	})
}

// TestAPluginThatHangsDoesNotKeepAPodFromBeingDeleted, nor another from starting.
func TestAPluginThatHangsDoesNotKeepAPodFromBeingDeleted(t *testing.T) {
	d := &dongles{hang: true}
	withDongles(t, map[string]podstest.Program{"web": {}}, d, func(w *world) {
		w.create(newPod("p", "web"))
		d.mu.Lock()
		d.hang = false
		d.mu.Unlock()
		w.create(newPod("q", "web"))
		if got := w.get("q").Status.Phase; got != corev1.PodRunning {
			t.Errorf("q is %s", got)
		}
		w.delete("p", 30)
		w.settle()
		synctest.Wait()
		if w.exists("p") {
			t.Error("p is there")
		}
	})
}
