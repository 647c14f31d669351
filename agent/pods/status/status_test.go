package status

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// run is a container of the sandbox "s"; a negative code means it is running.
func run(name string, attempt uint32, code int32) *observed.Container {
	c := &runtimeapi.ContainerStatus{Id: name + "-id", Metadata: &runtimeapi.ContainerMetadata{Name: name, Attempt: attempt},
		Image: &runtimeapi.ImageSpec{Image: "img"}, ImageRef: "sha256:x", StartedAt: now.UnixNano(), State: runtimeapi.ContainerState_CONTAINER_RUNNING}
	if code >= 0 {
		c.State, c.ExitCode, c.FinishedAt = runtimeapi.ContainerState_CONTAINER_EXITED, code, now.UnixNano()
	}
	return &observed.Container{ContainerStatus: c, SandboxID: "s"}
}

func seen(containers ...*observed.Container) *observed.Pod {
	return &observed.Pod{Containers: containers, Sandboxes: []*runtimeapi.PodSandboxStatus{{Id: "s", Network: &runtimeapi.PodSandboxNetworkStatus{Ip: "10.42.0.9"}}}}
}

func pod(policy corev1.RestartPolicy, inits, mains []string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "u", Generation: 4}, Spec: corev1.PodSpec{RestartPolicy: policy}}
	for _, n := range inits {
		c := corev1.Container{Name: n, Image: "img"}
		if strings.HasPrefix(n, "side") {
			always := corev1.ContainerRestartPolicyAlways
			c.RestartPolicy = &always
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	for _, n := range mains {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: n, Image: "img"})
	}
	return p
}

func generate(p *corev1.Pod, r *observed.Pod, edit func(*Input)) corev1.PodStatus {
	yes := func(*observed.Container) bool { return true }
	in := Input{Pod: p, Runtime: r, Ready: yes, Started: yes, HostIPs: []string{"192.0.2.1"}, RuntimeName: "setpoint", Now: now}
	if edit != nil {
		edit(&in)
	}
	return Generate(in)
}

func TestPhases(t *testing.T) {
	always, never, onFailure := corev1.RestartPolicyAlways, corev1.RestartPolicyNever, corev1.RestartPolicyOnFailure
	one, two, init := []string{"a"}, []string{"a", "b"}, []string{"i"}
	ended := func(in *Input) { in.Ended = true }
	for _, tc := range []struct {
		name string
		pod  *corev1.Pod
		seen *observed.Pod
		edit func(*Input)
		want corev1.PodPhase
	}{
		{"nothing yet", pod(always, nil, one), &observed.Pod{}, nil, corev1.PodPending},
		{"running", pod(always, nil, one), seen(run("a", 0, -1)), nil, corev1.PodRunning},
		{"one of two", pod(always, nil, two), seen(run("a", 0, -1)), nil, corev1.PodPending},
		{"one done, one runs", pod(never, nil, two), seen(run("a", 0, 0), run("b", 0, -1)), nil, corev1.PodRunning},
		{"all done", pod(never, nil, two), seen(run("a", 0, 0), run("b", 0, 0)), nil, corev1.PodSucceeded},
		{"one failed", pod(never, nil, two), seen(run("a", 0, 0), run("b", 0, 1)), nil, corev1.PodFailed},
		{"failed, will restart", pod(onFailure, nil, one), seen(run("a", 0, 1)), nil, corev1.PodRunning},
		{"done, will restart", pod(always, nil, one), seen(run("a", 0, 0)), nil, corev1.PodRunning},
		{"init runs", pod(always, init, one), seen(run("i", 0, -1)), nil, corev1.PodPending},
		{"init failed, never", pod(never, init, one), seen(run("i", 0, 1)), nil, corev1.PodFailed},
		{"init failed, again", pod(always, init, one), seen(run("i", 0, 1)), nil, corev1.PodPending},
		{"init done", pod(always, init, one), seen(run("i", 0, 0), run("a", 0, -1)), nil, corev1.PodRunning},
		{"sidecar and main", pod(always, []string{"side"}, one), seen(run("side", 0, -1), run("a", 0, -1)), nil, corev1.PodRunning},
		{"stopped cleanly", pod(always, nil, one), seen(run("a", 0, 0)), ended, corev1.PodSucceeded},
		{"killed", pod(always, nil, one), seen(run("a", 0, 137)), ended, corev1.PodFailed},
		{"never ran, taken down", pod(always, nil, one), &observed.Pod{}, ended, corev1.PodFailed},
		{"rejected", pod(always, nil, one), &observed.Pod{}, func(in *Input) { in.Rejected = &Rejection{Reason: "OutOfcpu"} }, corev1.PodFailed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := generate(tc.pod, tc.seen, tc.edit).Phase; got != tc.want {
				t.Errorf("phase = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAFinishedPodStaysFinished(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, nil, []string{"a"})
	p.Status.Phase = corev1.PodFailed
	if got := generate(p, seen(run("a", 0, -1)), nil).Phase; got != corev1.PodFailed {
		t.Errorf("phase = %s", got)
	}
}

// TestAnEndIsForGood: a container whose command cannot run has ended, and where nothing starts it again it does not wait: the API takes
// no status in which an end is none any more.
func TestAnEndIsForGood(t *testing.T) {
	cannotRun := func(in *Input) {
		in.Waiting = map[string]Waiting{"a": {Reason: "RunContainerError", Message: "no such file"}}
	}
	for policy, ended := range map[corev1.RestartPolicy]bool{
		corev1.RestartPolicyNever: true, corev1.RestartPolicyOnFailure: false, corev1.RestartPolicyAlways: false,
	} {
		s := generate(pod(policy, nil, []string{"a"}), seen(run("a", 0, 128)), cannotRun).ContainerStatuses[0]
		if (s.State.Terminated != nil) != ended || (s.State.Waiting != nil) == ended {
			t.Errorf("%s: %+v", policy, s.State)
		}
	}
}

func TestContainerStatuses(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, nil, []string{"a"})
	crash := func(in *Input) {
		in.Waiting = map[string]Waiting{"a": {Reason: "CrashLoopBackOff", Message: "m"}}
	}
	s := generate(p, seen(run("a", 2, 1), run("a", 1, 9)), crash).ContainerStatuses[0]
	if s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff" || s.LastTerminationState.Terminated.ExitCode != 1 || s.RestartCount != 2 || s.Ready {
		t.Errorf("in the back-off: %+v", s)
	}
	s = generate(p, seen(run("a", 1, -1), run("a", 0, 9)), nil).ContainerStatuses[0]
	if s.State.Running == nil || s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.ExitCode != 9 ||
		s.LastTerminationState.Terminated.Reason != "Error" || s.ContainerID != "setpoint://a-id" || s.ImageID != "sha256:x" || !s.Ready {
		t.Errorf("running again: %+v", s)
	}
	created := run("a", 0, -1)
	created.State = runtimeapi.ContainerState_CONTAINER_CREATED
	if got := generate(p, seen(created), nil).ContainerStatuses[0].State.Waiting; got == nil || got.Reason != "ContainerCreating" {
		t.Errorf("created: %+v", got)
	}
	if got := generate(pod(corev1.RestartPolicyNever, []string{"a"}, []string{"b"}), seen(created), nil).InitContainerStatuses[0].State.Waiting; got == nil || got.Reason != "PodInitializing" {
		t.Errorf("created, to initialise: %+v", got)
	}
	oom := run("a", 0, 137)
	oom.Reason = "OOMKilled"
	message := func(in *Input) { in.TerminationMessage = func(*observed.Container) string { return "last words" } }
	s = generate(p, seen(oom), message).ContainerStatuses[0]
	if got := s.State.Terminated; got == nil || got.Reason != "OOMKilled" || got.Message != "last words" || got.ContainerID == "" || !got.FinishedAt.Time.Equal(now) {
		t.Errorf("killed: %+v", got)
	}
}

func TestTheRuntimeHasForgotten(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, nil, []string{"a"})
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "a", RestartCount: 3, ContainerID: "setpoint://old", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	s := generate(p, &observed.Pod{}, nil).ContainerStatuses[0]
	if s.State.Waiting == nil || s.RestartCount != 3 || s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.Reason != "ContainerStatusUnknown" {
		t.Errorf("%+v", s)
	}
	p.Spec.RestartPolicy = corev1.RestartPolicyNever
	got := generate(p, &observed.Pod{}, nil)
	if got.ContainerStatuses[0].State.Terminated == nil || got.Phase != corev1.PodFailed {
		t.Errorf("with Never: %+v", got)
	}
}

func TestConditions(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, []string{"i"}, []string{"a", "b"})
	find := func(s corev1.PodStatus, typ corev1.PodConditionType) corev1.PodCondition {
		for _, c := range s.Conditions {
			if c.Type == typ {
				return c
			}
		}
		t.Fatalf("no %s", typ)
		return corev1.PodCondition{}
	}
	s := generate(p, seen(run("i", 0, -1)), nil)
	if c := find(s, corev1.PodInitialized); c.Status != corev1.ConditionFalse || c.Message != "containers with incomplete status: [i]" || c.ObservedGeneration != 4 {
		t.Errorf("Initialized: %+v", c)
	}
	if c := find(s, corev1.ContainersReady); c.Reason != "ContainersNotReady" || c.Message != "containers with unready status: [a b]" {
		t.Errorf("ContainersReady: %+v", c)
	}
	if c := find(s, corev1.PodReadyToStartContainers); c.Status != corev1.ConditionTrue {
		t.Errorf("PodReadyToStartContainers: %+v", c)
	}
	up := seen(run("i", 0, 0), run("a", 0, -1), run("b", 0, -1))
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
	if c := find(generate(p, up, nil), corev1.PodReady); c.Reason != "ReadinessGatesNotReady" || !strings.Contains(c.Message, `"gate" does not exist`) {
		t.Errorf("gate missing: %+v", c)
	}
	p.Status.Conditions = []corev1.PodCondition{{Type: "gate", Status: corev1.ConditionTrue}}
	if c := find(generate(p, up, nil), corev1.PodReady); c.Status != corev1.ConditionTrue {
		t.Errorf("gate open: %+v", c)
	}
	unready := func(in *Input) { in.Ready = func(c *observed.Container) bool { return c.ContainerName() == "a" } }
	if c := find(generate(p, up, unready), corev1.PodReady); c.Message != "containers with unready status: [b]" {
		t.Errorf("one unready: %+v", c)
	}
}

func TestGenerateTwiceGivesTheSame(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, nil, []string{"a"})
	p.Status = generate(p, seen(run("a", 0, -1)), nil)
	later := generate(p, seen(run("a", 0, -1)), func(in *Input) { in.Now = now.Add(time.Hour) })
	a, _ := json.Marshal(p.Status)
	b, _ := json.Marshal(later)
	if string(a) != string(b) {
		t.Errorf("an hour later:\n%s\n%s", a, b)
	}
}

// withManager runs a manager on a fake API that holds p.
func withManager(t *testing.T, p *corev1.Pod, body func(t *testing.T, m *Manager, client *fake.Clientset)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(p)
		m := NewManager(Config{Client: client})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); m.Run(ctx) }()
		body(t, m, client)
		cancel()
		<-done
	})
}

func patches(client *fake.Clientset) (out []string) {
	for _, a := range client.Actions() {
		if p, ok := a.(clienttesting.PatchAction); ok {
			out = append(out, string(p.GetPatch()))
		}
	}
	return out
}

func TestManagerSendsOnlyWhatChanged(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, nil, []string{"a"})
	p.Status.Conditions = []corev1.PodCondition{{Type: "theirs", Status: corev1.ConditionTrue}}
	withManager(t, p, func(t *testing.T, m *Manager, client *fake.Clientset) {
		m.Set(p, generate(p, seen(run("a", 0, -1)), nil))
		synctest.Wait()
		if got := patches(client); len(got) != 1 || !strings.Contains(got[0], `"uid":"u"`) {
			t.Fatalf("patches: %v", got)
		}
		stored, _ := client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
		if len(stored.Status.Conditions) != 6 || stored.Status.Phase != corev1.PodRunning {
			t.Errorf("stored: %+v", stored.Status)
		}
		m.Set(stored, generate(stored, seen(run("a", 0, -1)), nil))
		time.Sleep(time.Minute)
		if got := patches(client); len(got) != 1 {
			t.Errorf("sent again: %v", got[1:])
		}
	})
}

func TestManagerRetriesAndMergesWhatChangedMeanwhile(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, nil, []string{"a"})
	withManager(t, p, func(t *testing.T, m *Manager, client *fake.Clientset) {
		var down atomic.Bool
		down.Store(true)
		client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return down.Load(), nil, errors.New("connection refused")
		})
		m.Set(p, generate(p, seen(run("a", 0, -1)), nil))
		time.Sleep(20 * time.Second)
		m.Set(p, generate(p, seen(run("a", 0, 1)), func(in *Input) { in.Ended = true }))
		down.Store(false)
		if err := m.Flush(t.Context(), p.UID); err != nil {
			t.Fatal(err)
		}
		stored, _ := client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
		if stored.Status.Phase != corev1.PodFailed {
			t.Errorf("phase = %s", stored.Status.Phase)
		}
	})
}

func TestManagerDropsTheStatusOfAPodThatIsGone(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, nil, []string{"a"})
	withManager(t, p, func(t *testing.T, m *Manager, client *fake.Clientset) {
		namesake := p.DeepCopy()
		namesake.UID = "other"
		if _, err := client.CoreV1().Pods("ns").Update(t.Context(), namesake, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, errors.New("uid mismatch")
		})
		m.Set(p, generate(p, seen(run("a", 0, -1)), nil))
		if err := m.Flush(t.Context(), p.UID); err != nil {
			t.Fatal(err)
		}
		n := len(patches(client))
		time.Sleep(time.Minute)
		if got := len(patches(client)); got != n {
			t.Errorf("%d more patches for a pod that is gone", got-n)
		}
	})
}

func TestUnimportantChangesWaitForCompany(t *testing.T) {
	p := pod(corev1.RestartPolicyAlways, nil, []string{"a"})
	withManager(t, p, func(t *testing.T, m *Manager, client *fake.Clientset) {
		m.Set(p, generate(p, &observed.Pod{}, nil))
		synctest.Wait()
		if n := len(patches(client)); n != 0 {
			t.Errorf("%d patches at once for a pending pod", n)
		}
		m.Set(p, generate(p, seen(run("a", 0, -1)), nil))
		time.Sleep(time.Minute)
		if n := len(patches(client)); n != 1 {
			t.Errorf("%d patches, want one", n)
		}
	})
}

// TestFlushDoesNotWaitForARefusedStatus: a status the API will never take must
// not keep its pod from being removed.
func TestFlushDoesNotWaitForARefusedStatus(t *testing.T) {
	withManager(t, pod(corev1.RestartPolicyAlways, nil, []string{"c"}), func(t *testing.T, m *Manager, client *fake.Clientset) {
		p, err := client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var tries atomic.Int32
		client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			tries.Add(1)
			return true, nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "p", nil)
		})
		m.Set(p, corev1.PodStatus{Phase: corev1.PodFailed})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := m.Flush(ctx, p.UID); err != nil {
			t.Errorf("Flush: %v", err)
		}
		time.Sleep(time.Minute)
		if n := tries.Load(); n > 2 {
			t.Errorf("%d tries of what is refused", n)
		}
	})
}
