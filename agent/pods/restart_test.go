package pods

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/backoff"
	"github.com/setpoint-io/setpoint/agent/pods/podstest"
	"github.com/setpoint-io/setpoint/agent/pods/status"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

func TestRestartPolicies(t *testing.T) {
	programs := map[string]podstest.Program{"ok": {ExitAfter: time.Second}, "bad": {ExitAfter: time.Second, ExitCode: 1}}
	for _, tc := range []struct {
		policy corev1.RestartPolicy
		image  string
		phase  corev1.PodPhase
		starts bool // more than one
	}{
		{corev1.RestartPolicyNever, "ok", corev1.PodSucceeded, false},
		{corev1.RestartPolicyNever, "bad", corev1.PodFailed, false},
		{corev1.RestartPolicyOnFailure, "ok", corev1.PodSucceeded, false},
		{corev1.RestartPolicyOnFailure, "bad", corev1.PodRunning, true},
		{corev1.RestartPolicyAlways, "ok", corev1.PodRunning, true},
	} {
		t.Run(string(tc.policy)+"/"+tc.image, func(t *testing.T) {
			inBubble(t, programs, func(w *world) {
				p := newPod("p", tc.image)
				p.Spec.RestartPolicy = tc.policy
				w.create(p)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				got := w.get("p")
				if got.Status.Phase != tc.phase {
					t.Errorf("phase = %s, want %s", got.Status.Phase, tc.phase)
				}
				if again := slices.Contains(w.runtime.Calls(), "start c0/1"); again != tc.starts {
					t.Errorf("started again: %v, want %v", again, tc.starts)
				}
				if tc.phase == corev1.PodSucceeded && got.Status.ContainerStatuses[0].State.Terminated.Reason != "Completed" {
					t.Errorf("status: %+v", got.Status.ContainerStatuses[0])
				}
			})
		})
	}
}

// TestOwnRestartPolicies: each container runs again as it says itself, and the pod ends when none will.
func TestOwnRestartPolicies(t *testing.T) {
	programs := map[string]podstest.Program{"ok": {ExitAfter: time.Second}, "bad": {ExitAfter: time.Second, ExitCode: 42}}
	for name, c := range map[string]struct {
		values []int32 // of exit codes after which the second container runs again
		phase  corev1.PodPhase
		starts bool
	}{
		"no rule fits": {[]int32{1}, corev1.PodFailed, false},
		"a rule fits":  {[]int32{42}, corev1.PodRunning, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, programs, func(w *world) {
				p := newPod("p", "ok", "bad")
				never := corev1.ContainerRestartPolicyNever
				for i := range p.Spec.Containers {
					p.Spec.Containers[i].RestartPolicy = &never
				}
				p.Spec.Containers[1].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestart,
					ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: c.values}}}
				w.create(p)
				time.Sleep(5 * time.Second)
				synctest.Wait()
				if got := w.get("p").Status.Phase; got != c.phase {
					t.Errorf("phase = %s, want %s", got, c.phase)
				}
				if slices.Contains(w.runtime.Calls(), "start c0/1") {
					t.Error("the first container ran again")
				}
				if again := slices.Contains(w.runtime.Calls(), "start c1/1"); again != c.starts {
					t.Errorf("the second started again: %v, want %v", again, c.starts)
				}
			})
		})
	}
}

// TestAContainerThatIsBeingStartedIsInNoBackOff: what the one before it died of, or that it could not be started, is past.
func TestAContainerThatIsBeingStartedIsInNoBackOff(t *testing.T) {
	now := time.Now()
	at := func(state runtimeapi.ContainerState, created time.Duration) *observed.Pod {
		return &observed.Pod{Containers: []*observed.Container{{ContainerStatus: &runtimeapi.ContainerStatus{
			Id:       "id",
			Metadata: &runtimeapi.ContainerMetadata{Name: "c0"}, Labels: map[string]string{observed.LabelContainerName: "c0"},
			State: state, CreatedAt: now.Add(created).UnixNano(),
		}}}}
	}
	for name, c := range map[string]struct {
		runtime *observed.Pod
		due     bool
	}{
		"its start failed":                       {at(runtimeapi.ContainerState_CONTAINER_CREATED, -time.Second), false},
		"another one is there, and is starting":  {at(runtimeapi.ContainerState_CONTAINER_CREATED, time.Second), true},
		"another one was there, and has ended":   {at(runtimeapi.ContainerState_CONTAINER_EXITED, time.Second), false},
		"none is there, the start of one failed": {&observed.Pod{}, false},
	} {
		v := view{
			pod: newPod("p", "web"), runtime: c.runtime, now: now.Add(2 * time.Second),
			startFailed: map[string]time.Time{"c0": now}, crashes: map[string]*backoff.Backoff{"c0": {}},
		}
		v.crashes["c0"].Next(now, now)
		s := step{waiting: map[string]status.Waiting{}}
		if due := v.due(&s, &v.pod.Spec.Containers[0]); due != c.due || len(s.waiting) > 0 == c.due {
			t.Errorf("%s: due %v, waiting %v", name, due, s.waiting)
		}
	}
}
