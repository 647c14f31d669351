package simulated

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// aRunningPod has two containers, of which one was restarted twice.
func aRunningPod(policy corev1.RestartPolicy) *corev1.Pod {
	began := metav1.NewTime(time.Unix(1000, 0))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "u"},
		Spec:       corev1.PodSpec{RestartPolicy: policy, Containers: []corev1.Container{{Name: "a"}, {Name: "b"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
			},
			ContainerStatuses: []corev1.ContainerStatus{
				{Name: "a", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}},
				{Name: "b", Ready: true, RestartCount: 2, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}}},
			},
		},
	}
}

// TestACrashedPodStaysSoUntilItIsMended: the fleet does nothing about it, also after a change of its spec.
func TestACrashedPodStaysSoUntilItIsMended(t *testing.T) {
	pod, now := aRunningPod(corev1.RestartPolicyAlways), metav1.NewTime(time.Unix(2000, 0))
	f := &fleet{}
	pod.Status = Crash(pod, now)
	pod.Generation = 7
	if !Crashed(pod) || f.needsWork(pod) || pod.Status.Phase != corev1.PodRunning {
		t.Errorf("crashed %t, the fleet acts %t, phase %s", Crashed(pod), f.needsWork(pod), pod.Status.Phase)
	}
	for i, restarts := range []int32{1, 3} {
		c := pod.Status.ContainerStatuses[i]
		if c.Ready || c.RestartCount != restarts || c.LastTerminationState.Terminated == nil || c.LastTerminationState.Terminated.ExitCode != 137 {
			t.Errorf("%+v", c)
		}
	}
	if r := conditionOf(pod, corev1.PodReady); r.Status != corev1.ConditionFalse || r.Message != "containers with unready status: [a b]" {
		t.Errorf("%+v", r)
	}
	pod.Status = Mend(pod, now)
	if c := pod.Status.ContainerStatuses[1]; Crashed(pod) || !c.Ready || c.RestartCount != 3 || c.State.Running == nil {
		t.Errorf("mended: %+v", c)
	}
	if r := conditionOf(pod, corev1.PodReady); r.Status != corev1.ConditionTrue || r.Reason != "" || r.Message != "" {
		t.Errorf("mended: %+v", r)
	}
	if again := containerStatuses(pod, now); again[1].RestartCount != 3 || again[1].LastTerminationState.Terminated == nil {
		t.Errorf("the next status forgets the crash: %+v", again[1])
	}
	pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	pod.Status = Crash(pod, now)
	pod.Status = Mend(pod, now)
	if r := conditionOf(pod, corev1.PodReady); r.Status != corev1.ConditionFalse || r.Reason != reasonGates {
		t.Errorf("mended behind a closed gate: %+v", r)
	}
}

// TestACrashIsNotUndoneUnseen: what the fleet writes is about the pod as it was read, and is refused when it has crashed since.
func TestACrashIsNotUndoneUnseen(t *testing.T) {
	pod, now := aRunningPod(corev1.RestartPolicyNever), metav1.NewTime(time.Unix(2000, 0))
	pod.ResourceVersion = "7"
	gated := pod.DeepCopy()
	gated.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/gate"}}
	f := newFleet(Config{Nodes: 1, NamePrefix: "sim-"})
	if err := f.read(f.informers()); err != nil {
		t.Fatal(err)
	}
	for name, patch := range map[string]func() ([]byte, error){
		"runs":     func() ([]byte, error) { return f.runningPatch(pod, now) },
		"gated":    func() ([]byte, error) { return f.runningPatch(gated, now) },
		"finished": func() ([]byte, error) { return f.finishedPatch(pod, now) },
	} {
		var written corev1.Pod
		text, err := patch()
		if err = errors.Join(err, json.Unmarshal(text, &written)); err != nil || written.ResourceVersion != "7" || written.UID != "u" {
			t.Errorf("%s: %v, %s", name, err, text)
		}
	}
}

// TestAPodThatIsNotRestartedFails when it crashes.
func TestAPodThatIsNotRestartedFails(t *testing.T) {
	pod := aRunningPod(corev1.RestartPolicyNever)
	pod.Status = Crash(pod, metav1.NewTime(time.Unix(2000, 0)))
	if Crashed(pod) || pod.Status.Phase != corev1.PodFailed || pod.Status.ContainerStatuses[0].State.Terminated.ExitCode != 137 {
		t.Errorf("%+v", pod.Status)
	}
}
