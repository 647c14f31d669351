package pods

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
	"github.com/setpoint-io/setpoint/agent/runtime/cri"
	"github.com/setpoint-io/setpoint/internal/podfields"
)

func to[T any](v T) *T { return &v }

// TestAPodWithAFieldThatTheNodeDoesNotHonourFails, and says which field.
func TestAPodWithAFieldThatTheNodeDoesNotHonourFails(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		pod := newPod("p", "web")
		pod.Spec.HostUsers = to(false)
		w.create(pod)
		got := w.get("p").Status
		want := "Pod was rejected: this node does not support spec.hostUsers: it has no user namespaces"
		if got.Phase != corev1.PodFailed || got.Reason != "FieldNotSupported" || got.Message != want {
			t.Errorf("status %s %q %q", got.Phase, got.Reason, got.Message)
		}
		if !w.events.has("FieldNotSupported " + want) {
			t.Errorf("events:\n%s", w.events)
		}
		if calls := w.runtime.Calls(); len(calls) != 0 {
			t.Errorf("something of it ran: %v", calls)
		}
		w.delete("p", 0)
		w.settle()
		if w.exists("p") {
			t.Error("it cannot be deleted")
		}
	})
}

func TestAFieldWithoutEffectGivesAnEvent(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		pod := newPod("p", "web")
		pod.Spec.EvictionResponders = []corev1.EvictionResponder{{Name: "r"}}
		w.create(pod)
		if got := w.get("p"); got.Status.Phase != corev1.PodRunning {
			t.Errorf("phase %s", got.Status.Phase)
		}
		if !w.events.has("FieldIgnored spec.evictionResponders: has no effect") {
			t.Errorf("events:\n%s", w.events)
		}
	})
}

// TestAControllerThatMakesRefusedPodsIsSlowedDown: each failed pod makes its ReplicaSet create another.
func TestAControllerThatMakesRefusedPodsIsSlowedDown(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		made := func(name string) {
			pod := newPod(name, "web")
			pod.Spec.HostUsers = to(false)
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "rs", UID: "rs", Controller: to(true)}}
			w.create(pod)
		}
		made("first")
		if got := w.get("first").Status.Phase; got != corev1.PodFailed {
			t.Errorf("first: %s", got)
		}
		made("second")
		got := w.get("second").Status
		if got.Phase != corev1.PodPending || len(got.ContainerStatuses) != 1 || got.ContainerStatuses[0].State.Waiting == nil ||
			got.ContainerStatuses[0].State.Waiting.Reason != "FieldNotSupported" || !strings.Contains(got.ContainerStatuses[0].State.Waiting.Message, "spec.hostUsers") {
			t.Errorf("second: %+v", got)
		}
		time.Sleep(11 * time.Second)
		w.settle()
		if got := w.get("second").Status.Phase; got != corev1.PodFailed {
			t.Errorf("second, later: %s", got)
		}
	})
}

func TestAnEphemeralContainerIsJudgedWhenItComes(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}, "tool": {}}, func(w *world) {
		w.create(newPod("p", "web"))
		pod := w.get("p")
		pod.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			Name: "debug", Image: "tool", VolumeMounts: []corev1.VolumeMount{{BindMountOptions: []string{"noexec"}}}}}}
		if _, err := w.client.CoreV1().Pods("default").Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.settle()
		got := w.get("p").Status
		if len(got.EphemeralContainerStatuses) != 1 || got.EphemeralContainerStatuses[0].State.Waiting == nil ||
			!strings.Contains(got.EphemeralContainerStatuses[0].State.Waiting.Message, "bindMountOptions") {
			t.Errorf("status %+v", got.EphemeralContainerStatuses)
		}
		if got.Phase != corev1.PodRunning {
			t.Errorf("phase %s", got.Phase)
		}
	})
}

// aRuntime answers what a test says.
type aRuntime struct {
	cri.Runtime
	status *runtimeapi.StatusResponse
}

func (r aRuntime) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	if r.status == nil {
		return nil, errors.New("away")
	}
	return r.status, nil
}

func TestWhatARuntimeCanDo(t *testing.T) {
	old, err := nodeOf(t.Context(), aRuntime{status: &runtimeapi.StatusResponse{RuntimeHandlers: []*runtimeapi.RuntimeHandler{{}}}})
	if want := (podfields.Node{HostPorts6: true, HugePageLimits: true, SELinux: true, AppArmor: true}); old != want || err != nil {
		t.Errorf("an old one: %+v %v", old, err)
	}
	full, err := nodeOf(t.Context(), aRuntime{status: &runtimeapi.StatusResponse{
		Features:        &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true},
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{{Features: &runtimeapi.RuntimeHandlerFeatures{RecursiveReadOnlyMounts: true}}},
	}})
	if !full.RecursiveReadOnly || !full.SupplementalGroupsPolicy || err != nil {
		t.Errorf("a new one: %+v %v", full, err)
	}
	if _, err := nodeOf(t.Context(), aRuntime{}); err == nil {
		t.Error("one that does not answer can do nothing, and nobody is refused for that")
	}
}

func TestRuntimeClassChoosesTheHandler(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		pod := newPod("p", "web")
		pod.Spec.RuntimeClassName = to("sandboxed")
		w.create(pod)
		if got := w.runtime.Handlers(); len(got) != 1 || got[0] != "handler-of-sandboxed" {
			t.Errorf("handlers %q", got)
		}
	})
}

func TestALostSandboxIsAnEvent(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		pod := newPod("p", "web")
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c0", ContainerID: "setpoint://gone", RestartCount: 2}}
		w.create(pod)
		if got := w.get("p").Status; got.Phase != corev1.PodRunning || got.ContainerStatuses[0].RestartCount != 3 {
			t.Errorf("status %s, %d restarts", got.Phase, got.ContainerStatuses[0].RestartCount)
		}
		if !w.events.has("SandboxChanged Pod sandbox is lost") {
			t.Errorf("events:\n%s", w.events)
		}
	})
}
