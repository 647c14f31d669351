package pods

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
)

func TestPodRunsAtOnce(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		begin := time.Now()
		if _, err := w.client.CoreV1().Pods("default").Create(w.t.Context(), newPod("p", "web"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if d := time.Since(begin); d != 0 {
			t.Errorf("took %v of virtual time, want none: something polls", d)
		}
		p := w.get("p")
		if p.Status.Phase != corev1.PodRunning || condition(p, corev1.PodReady) != corev1.ConditionTrue {
			t.Fatalf("phase %s, ready %s; events:\n%s", p.Status.Phase, condition(p, corev1.PodReady), w.events)
		}
		s := p.Status.ContainerStatuses[0]
		if s.State.Running == nil || !s.Ready || !*s.Started || !strings.HasPrefix(s.ContainerID, "setpoint://container-") || s.RestartCount != 0 {
			t.Errorf("container status: %+v", s)
		}
		if p.Status.PodIP == "" || p.Status.HostIP != "192.0.2.1" || p.Status.StartTime == nil || p.Status.ObservedGeneration != 1 {
			t.Errorf("pod status: %+v", p.Status)
		}
		for _, want := range []string{"Pulled Container image \"web\" already present", "Created Container created", "Started Container started"} {
			if !w.events.has(want) {
				t.Errorf("no event %q in\n%s", want, w.events)
			}
		}
	})
}

func TestNothingIsWrittenInAQuietWorld(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		w.create(newPod("p", "web"))
		before := writes(w.client)
		time.Sleep(time.Hour)
		if n := writes(w.client) - before; n != 0 {
			t.Errorf("%d writes in a quiet hour", n)
		}
	})
}

func writes(c *fake.Clientset) int {
	n := 0
	for _, a := range c.Actions() {
		if v := a.GetVerb(); v == "patch" || v == "update" || v == "create" || v == "delete" {
			n++
		}
	}
	return n
}

func TestCrashLoopPauses(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"bad": {ExitAfter: time.Second, ExitCode: 3}}, func(w *world) {
		w.create(newPod("p", "bad"))
		starts := func() int {
			n := 0
			for _, c := range w.runtime.Calls() {
				if strings.HasPrefix(c, "start ") {
					n++
				}
			}
			return n
		}
		// Ends at 1 s; at once again; ends at 2 s; 10 s; ends at 13 s; 20 s; ends at 34 s; 40 s.
		for _, step := range []struct{ at, starts int }{{2, 2}, {11, 2}, {13, 3}, {31, 3}, {34, 4}, {72, 4}, {75, 5}} {
			time.Sleep(time.Until(w.born().Add(time.Duration(step.at) * time.Second)))
			synctest.Wait()
			if got := starts(); got != step.starts {
				t.Errorf("at %d s: %d starts, want %d", step.at, got, step.starts)
			}
		}
		time.Sleep(5 * time.Second)
		s := w.get("p").Status.ContainerStatuses[0]
		if s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff" || s.LastTerminationState.Terminated == nil ||
			s.LastTerminationState.Terminated.ExitCode != 3 || s.LastTerminationState.Terminated.Reason != "Error" || s.RestartCount != 4 {
			t.Errorf("status in the back-off: %+v", s)
		}
		if want := "back-off 1m20s restarting failed container=c0 pod=p_default(uid-p)"; s.State.Waiting != nil && s.State.Waiting.Message != want {
			t.Errorf("message = %q, want %q", s.State.Waiting.Message, want)
		}
		if !w.events.has("BackOff Back-off restarting failed container c0 in pod p_default(uid-p)") {
			t.Errorf("no BackOff event in\n%s", w.events)
		}
		if got := w.get("p").Status.Phase; got != corev1.PodRunning {
			t.Errorf("phase = %s, want Running", got)
		}
	})
}

// born is the start of the first bubble second: bubbles begin at the same time.
func (w *world) born() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

func TestGracefulDeletion(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {StopsAfter: 3 * time.Second}}, func(w *world) {
		p := newPod("p", "web")
		p.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 5}}}
		w.create(p)
		w.delete("p", 30)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if slices.ContainsFunc(w.runtime.Calls(), func(c string) bool { return strings.HasPrefix(c, "stop") }) {
			t.Error("stopped before the preStop hook was done")
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if !slices.Contains(w.runtime.Calls(), "stop c0/0 25s") {
			t.Errorf("the hook's time was not counted: %v", w.runtime.Calls())
		}
		if w.exists("p") || w.runtime.Left() != 0 {
			t.Errorf("pod exists: %v, %d things left in the runtime", w.exists("p"), w.runtime.Left())
		}
		if !w.events.has("Killing Stopping container c0") {
			t.Errorf("no Killing event in\n%s", w.events)
		}
		if got := lastPhase(w.client); got != corev1.PodSucceeded {
			t.Errorf("last phase = %q, want Succeeded", got)
		}
	})
}

// lastPhase is the phase in the last status patch.
func lastPhase(c *fake.Clientset) corev1.PodPhase {
	phase := corev1.PodPhase("")
	for _, a := range c.Actions() {
		if p, ok := a.(clienttesting.PatchAction); ok {
			for _, known := range []corev1.PodPhase{corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed} {
				if strings.Contains(string(p.GetPatch()), fmt.Sprintf("%q:%q", "phase", known)) {
					phase = known
				}
			}
		}
	}
	return phase
}

func TestShorterGraceCutsTheLongerOne(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"stubborn": {StopsAfter: time.Hour}}, func(w *world) {
		w.create(newPod("p", "stubborn"))
		w.delete("p", 600)
		time.Sleep(time.Second)
		w.delete("p", 3)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if w.exists("p") {
			t.Errorf("the pod still exists; calls: %v", w.runtime.Calls())
		}
	})
}

func TestVanishedPodIsKilled(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		w.create(newPod("p", "web"))
		if err := w.client.CoreV1().Pods("default").Delete(w.t.Context(), "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.settle()
		if n := w.runtime.Left(); n != 0 {
			t.Errorf("%d things left in the runtime", n)
		}
	})
}

func TestAgentRestartLeavesContainersAlone(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		p := newPod("p", "web")
		p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"ready"}}}, PeriodSeconds: 10}
		w.create(p)
		id := w.get("p").Status.ContainerStatuses[0].ContainerID
		w.stopAgent()
		calls := len(w.runtime.Calls())
		before := writes(w.client)
		w.startAgent()
		w.settle()
		if got := w.get("p").Status.ContainerStatuses[0]; got.ContainerID != id || !got.Ready {
			t.Errorf("status after the restart: %+v", got)
		}
		more := slices.DeleteFunc(slices.Clone(w.runtime.Calls()[calls:]), func(call string) bool {
			return call == "exec ready" // the probe goes on, and its first time is drawn
		})
		if len(more) != 0 {
			t.Errorf("calls after the restart: %v", more)
		}
		if n := writes(w.client) - before; n != 0 {
			t.Errorf("%d writes after the restart: the pod flapped", n)
		}
	})
}

// TestAnotherFamilyOfTheNodeIsTold: an agent that comes back with an address of another version of IP says so of each pod that goes on.
func TestAnotherFamilyOfTheNodeIsTold(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		w.create(newPod("p", "web"))
		if w.events.has("HostIPsIPFamilyMismatch") {
			t.Errorf("a new pod:\n%s", w.events)
		}
		w.stopAgent()
		w.hostIP = "2001:db8::1"
		w.startAgent()
		w.settle()
		time.Sleep(time.Hour)
		if n := strings.Count(w.events.String(), "HostIPsIPFamilyMismatch"); n != 1 || w.get("p").Status.HostIP != w.hostIP {
			t.Errorf("told %d times, host %s:\n%s", n, w.get("p").Status.HostIP, w.events)
		}
	})
}

func TestPodDeletedWhileTheAgentWasAwayIsRemoved(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		w.create(newPod("p", "web"))
		w.create(newPod("q", "web"))
		w.stopAgent()
		if err := w.client.CoreV1().Pods("default").Delete(w.t.Context(), "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.startAgent()
		w.settle()
		if n := w.runtime.Left(); n != 2 {
			t.Errorf("%d things left in the runtime, want q's sandbox and container", n)
		}
	})
}

func TestOrphansAreFoundOnceTheRuntimeAnswers(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		w.create(newPod("p", "web"))
		w.stopAgent()
		if err := w.client.CoreV1().Pods("default").Delete(w.t.Context(), "p", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.runtime.FailLists(errors.New("the runtime is starting"))
		w.startAgent()
		time.Sleep(3 * lookRetry)
		w.runtime.FailLists(nil)
		time.Sleep(2 * lookRetry)
		w.settle()
		if n := w.runtime.Left(); n != 0 {
			t.Errorf("%d things of a pod that is gone are left in the runtime", n)
		}
	})
}

func TestRebootMakesANewSandbox(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		w.create(newPod("p", "web"))
		w.stopAgent()
		w.runtime.Reboot()
		w.startAgent()
		w.settle()
		p := w.get("p")
		s := p.Status.ContainerStatuses[0]
		if p.Status.Phase != corev1.PodRunning || s.RestartCount != 1 || s.State.Running == nil || s.LastTerminationState.Terminated == nil {
			t.Errorf("status after the reboot: %+v\n%v\n%s", s, w.runtime.Calls(), w.events)
		}
	})
}

// TestImageVolumesArePulled by their own policy, before the container that mounts them is created.
func TestImageVolumesArePulled(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}, "data": {}}, func(w *world) {
		w.runtime.FailPull("data", errors.New("no route to registry"))
		p := newPod("p", "web", "web")
		p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			Image: &corev1.ImageVolumeSource{Reference: "data", PullPolicy: corev1.PullAlways},
		}}}
		p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: "/v", SubPath: "x"}}
		w.create(p)
		s := w.get("p").Status.ContainerStatuses
		if s[0].State.Waiting == nil || s[0].State.Waiting.Reason != "ErrImagePull" || s[1].State.Running == nil {
			t.Errorf("%+v", s)
		}
		w.runtime.FailPull("data", nil)
		time.Sleep(time.Minute)
		if s := w.get("p").Status.ContainerStatuses; s[0].State.Running == nil {
			t.Errorf("%+v", s[0].State)
		}
		for _, m := range w.runtime.Config("c0").Mounts {
			if m.ContainerPath == "/v" && (m.Image.GetImage() == "" || m.ImageSubPath != "x" || m.HostPath != "") {
				t.Errorf("%+v", m)
			}
		}
	})
}

func TestPullFailures(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"app": {}}, func(w *world) {
		w.runtime.FailPull("app", errors.New("no route to registry"))
		w.create(newPod("p", "app"))
		if s := w.get("p").Status.ContainerStatuses[0]; s.State.Waiting == nil || s.State.Waiting.Reason != "ErrImagePull" {
			t.Errorf("status: %+v", s)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if s := w.get("p").Status.ContainerStatuses[0]; s.State.Waiting == nil || s.State.Waiting.Reason != "ImagePullBackOff" {
			t.Errorf("status: %+v", s)
		}
		w.runtime.FailPull("app", nil)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if p := w.get("p"); p.Status.Phase != corev1.PodRunning {
			t.Errorf("phase = %s; events:\n%s", p.Status.Phase, w.events)
		}
	})
}

// TestAPodThatCannotBeRemovedSaysSo, and more and more seldom.
func TestAPodThatCannotBeRemovedSaysSo(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		w.create(newPod("p", "web"))
		w.runtime.Keep("c0")
		w.delete("p", 1)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if told := strings.Count(w.events.String(), "FailedKillPod error killing pod: c0 is kept"); told < 3 || told > 15 {
			t.Errorf("told %d times in\n%s", told, w.events)
		}
		w.runtime.Keep("")
		time.Sleep(startRetryMax)
		synctest.Wait()
		if w.exists("p") {
			t.Error("the pod is there")
		}
	})
}

func TestStartError(t *testing.T) {
	boom := errors.New("exec: \"nope\": executable file not found in $PATH")
	inBubble(t, map[string]podstest.Program{"nope": {StartError: boom}}, func(w *world) {
		w.create(newPod("p", "nope"))
		time.Sleep(15 * time.Second)
		synctest.Wait()
		s := w.get("p").Status.ContainerStatuses[0]
		if s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff" || s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.ExitCode != 128 {
			t.Errorf("status: %+v", s)
		}
		if !w.events.has("Failed Error: " + boom.Error()) {
			t.Errorf("no event in\n%s", w.events)
		}
	})
}

func TestMissingConfigMapKeyIsAConfigError(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		p := newPod("p", "web")
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "cm"}, Key: "k"}}}}
		w.create(p)
		s := w.get("p").Status.ContainerStatuses[0]
		if s.State.Waiting == nil || s.State.Waiting.Reason != "CreateContainerConfigError" || s.State.Waiting.Message != `configmap "cm" not found` {
			t.Errorf("status: %+v", s.State.Waiting)
		}
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "cm"}, Data: map[string]string{"k": "v"}}
		if _, err := w.client.CoreV1().ConfigMaps("default").Create(w.t.Context(), cm, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(startRetryMax)
		synctest.Wait()
		if got := w.get("p").Status.Phase; got != corev1.PodRunning {
			t.Errorf("phase = %s", got)
		}
		if s := w.get("p").Status.ContainerStatuses[0]; s.RestartCount != 0 {
			t.Errorf("restarts = %d, want none: nothing ever ran", s.RestartCount)
		}
	})
}

func TestInitContainersAndSidecars(t *testing.T) {
	programs := map[string]podstest.Program{"init": {ExitAfter: 2 * time.Second}, "web": {}, "side": {}}
	inBubble(t, programs, func(w *world) {
		always := corev1.ContainerRestartPolicyAlways
		p := newPod("p", "web")
		p.Spec.InitContainers = []corev1.Container{{Name: "i0", Image: "init"}, {Name: "s0", Image: "side", RestartPolicy: &always}, {Name: "i1", Image: "init"}}
		w.create(p)
		time.Sleep(time.Second)
		got := w.get("p")
		if got.Status.Phase != corev1.PodPending || got.Status.ContainerStatuses[0].State.Waiting.Reason != "PodInitializing" || condition(got, corev1.PodInitialized) != corev1.ConditionFalse {
			t.Errorf("while initialising: %+v", got.Status)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		got = w.get("p")
		if got.Status.Phase != corev1.PodRunning || condition(got, corev1.PodInitialized) != corev1.ConditionTrue || condition(got, corev1.PodReady) != corev1.ConditionTrue {
			t.Errorf("after: %+v", got.Status)
		}
		want := []string{"run p", "start i0/0", "start s0/0", "start i1/0", "start c0/0"}
		if calls := w.runtime.Calls(); !slices.Equal(calls, want) {
			t.Errorf("calls = %v, want %v", calls, want)
		}
		w.delete("p", 30)
		time.Sleep(time.Second)
		synctest.Wait()
		calls := w.runtime.Calls()
		if main, side := slices.IndexFunc(calls, isStop("c0")), slices.IndexFunc(calls, isStop("s0")); main < 0 || side < main {
			t.Errorf("the sidecar must stop after the main container: %v", calls)
		}
	})
}

func isStop(name string) func(string) bool {
	return func(c string) bool { return strings.HasPrefix(c, "stop "+name) }
}

func TestFailedInitContainerFailsAPodThatNeverRestarts(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"bad": {ExitAfter: time.Second, ExitCode: 1}, "web": {}}, func(w *world) {
		p := newPod("p", "web")
		p.Spec.RestartPolicy = corev1.RestartPolicyNever
		p.Spec.InitContainers = []corev1.Container{{Name: "i0", Image: "bad"}}
		w.create(p)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		got := w.get("p")
		if got.Status.Phase != corev1.PodFailed || got.Status.ContainerStatuses[0].State.Waiting == nil {
			t.Errorf("status: %+v", got.Status)
		}
		if slices.Contains(w.runtime.Calls(), "start c0/0") {
			t.Error("the main container was started")
		}
	})
}

func TestLivenessProbeRestarts(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		w.runtime.OnExec("alive", func() error { return podstest.Exit(1) })
		p := newPod("p", "web")
		p.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"alive"}}}, PeriodSeconds: 2, FailureThreshold: 3}
		w.create(p)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if s := w.get("p").Status.ContainerStatuses[0]; s.RestartCount != 1 {
			t.Errorf("restarts = %d, want 1; events:\n%s", s.RestartCount, w.events)
		}
		if !w.events.has("Killing Container c0 failed liveness probe, will be restarted") || !w.events.has("Unhealthy Liveness probe failed") {
			t.Errorf("events:\n%s", w.events)
		}
	})
}

func TestActiveDeadline(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		p := newPod("p", "web")
		seconds := int64(10)
		p.Spec.ActiveDeadlineSeconds = &seconds
		w.create(p)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		got := w.get("p")
		if got.Status.Phase != corev1.PodFailed || got.Status.Reason != "DeadlineExceeded" {
			t.Errorf("phase %s, reason %q", got.Status.Phase, got.Status.Reason)
		}
	})
}

func TestPodsBeyondTheNodeAreRejected(t *testing.T) {
	inBubble(t, map[string]podstest.Program{"web": {}}, func(w *world) {
		for _, name := range []string{"p", "q"} {
			p := newPod(name, "web")
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3")}
			w.create(p)
		}
		if got := w.get("p").Status.Phase; got != corev1.PodRunning {
			t.Errorf("p is %s", got)
		}
		if got := w.get("q").Status; got.Phase != corev1.PodFailed || got.Reason != "OutOfcpu" || len(got.ContainerStatuses) > 0 {
			t.Errorf("q: %s %s %s", got.Phase, got.Reason, got.Message)
		}
	})
}

func TestRuntimeWithoutEventsIsPolled(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, client: fake.NewClientset(), runtime: podstest.New(map[string]podstest.Program{"web": {}}), events: &recorder{}, dir: dir}
		w.runtime.WithoutEvents()
		w.startAgent()
		defer w.stopAgent()
		w.create(newPod("p", "web"))
		time.Sleep(3 * time.Second)
		w.runtime.Crash("c0", 1)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if s := w.get("p").Status.ContainerStatuses[0]; s.RestartCount != 1 {
			t.Errorf("restarts = %d, want 1", s.RestartCount)
		}
	})
}
