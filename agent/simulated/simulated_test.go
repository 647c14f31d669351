package simulated

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

// inBubble runs a fleet of n nodes against a fake API until body returns.
func inBubble(t *testing.T, n int, body func(t *testing.T, client *fake.Clientset)) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Run(ctx, Config{Client: client, Nodes: n}) }()
		synctest.Wait()
		body(t, client)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func boundPod(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Generation: 1},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
}

func TestPodsThatEnd(t *testing.T) {
	for _, c := range []struct {
		name        string
		policy      corev1.RestartPolicy
		annotations map[string]string
		after       time.Duration
		want        corev1.PodPhase
	}{
		{"always", corev1.RestartPolicyAlways, nil, time.Minute, corev1.PodRunning},
		{"never, still running", corev1.RestartPolicyNever, nil, 900 * time.Millisecond, corev1.PodRunning},
		{"never", corev1.RestartPolicyNever, nil, 1100 * time.Millisecond, corev1.PodSucceeded},
		{"never, fails", corev1.RestartPolicyNever, map[string]string{ExitCodeAnnotation: "3"}, 2 * time.Second, corev1.PodFailed},
		{"on failure", corev1.RestartPolicyOnFailure, nil, 2 * time.Second, corev1.PodSucceeded},
		{"on failure, fails", corev1.RestartPolicyOnFailure, map[string]string{ExitCodeAnnotation: "3"}, time.Minute, corev1.PodRunning},
		{"long", corev1.RestartPolicyNever, map[string]string{RunAnnotation: "30s"}, 29 * time.Second, corev1.PodRunning},
		{"long, over", corev1.RestartPolicyNever, map[string]string{RunAnnotation: "30s"}, 32 * time.Second, corev1.PodSucceeded},
		{"sleeps", corev1.RestartPolicyNever, nil, 59 * time.Second, corev1.PodRunning},
		{"slept", corev1.RestartPolicyOnFailure, nil, 62 * time.Second, corev1.PodSucceeded},
		{"no duration", corev1.RestartPolicyNever, map[string]string{RunAnnotation: "long"}, 2 * time.Second, corev1.PodSucceeded},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, 1, func(t *testing.T, client *fake.Clientset) {
				pod := boundPod("p", "sim-1")
				pod.Spec.RestartPolicy, pod.Annotations = c.policy, c.annotations
				if strings.HasPrefix(c.name, "sle") {
					pod.Spec.Containers[0].Command = []string{"sleep", "60"}
				}
				if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.after)
				got, err := client.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
				if err != nil || got.Status.Phase != c.want {
					t.Fatalf("%v, %v, want %v", got.Status.Phase, err, c.want)
				}
				ended := got.Status.ContainerStatuses[0].State.Terminated
				if (ended != nil) != (c.want != corev1.PodRunning) || ended != nil && ended.ExitCode != exitCode(pod) {
					t.Errorf("container: %+v", got.Status.ContainerStatuses[0].State)
				}
			})
		})
	}
}

// A pod of an adopted node whose containers run becomes ready when others of its kind did, and what its agent has told stays until then.
func TestAdoptedPodsThatStart(t *testing.T) {
	for name, c := range map[string]struct {
		habit        Habit
		after        time.Duration
		ready, bound bool
	}{
		"too early":               {Habit{ReadyAfter: time.Minute}, 50 * time.Second, false, false},
		"in time":                 {Habit{ReadyAfter: time.Minute}, 61 * time.Second, true, false},
		"never":                   {Habit{ReadyAfter: time.Minute, Never: true}, time.Hour, false, false},
		"it waited for its node":  {Habit{ReadyAfter: 5 * time.Minute}, 301 * time.Second, false, true},
		"the time from its node":  {Habit{ReadyAfter: 5 * time.Minute}, 5*time.Minute + 31*time.Second, true, true},
		"nobody knows of a start": {Habit{}, time.Second, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod := boundPod("p", "n")
				pod.CreationTimestamp = metav1.Now()
				pod.Status.Phase = corev1.PodRunning
				not := corev1.PodCondition{Status: corev1.ConditionFalse, Reason: "ContainersNotReady"}
				for _, not.Type = range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
					pod.Status.Conditions = append(pod.Status.Conditions, not)
				}
				if c.bound {
					pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
						Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(30 * time.Second)),
					})
				}
				node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{Label: labelValue("x")}}}
				client := fake.NewClientset(pod, node)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() {
					done <- Run(ctx, Config{Client: client, Adopted: []string{"n"}, NamePrefix: "x", Habit: func(*corev1.Pod) Habit { return c.habit }})
				}()
				time.Sleep(c.after)
				synctest.Wait()
				got, err := client.CoreV1().Pods("default").Get(ctx, "p", metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				if is := conditionOf(got, corev1.PodReady); (is.Status == corev1.ConditionTrue) != c.ready || c.ready && is.Reason != "" {
					t.Errorf("%+v", is)
				}
				if !c.ready && len(got.Status.ContainerStatuses) > 0 {
					t.Error("what the agent has told is written over")
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A pod with a readiness gate is ready while the gate is open, and says why it is not.
func TestReadinessGates(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, client *fake.Clientset) {
		pods := client.CoreV1().Pods("default")
		pod := boundPod("p", "sim-1")
		pod.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			gate corev1.ConditionStatus
			want string
		}{
			{"", `False ReadinessGatesNotReady corresponding condition of pod readiness gate "gate" does not exist.`},
			{corev1.ConditionTrue, "True  "},
			{corev1.ConditionFalse, `False ReadinessGatesNotReady the status of pod readiness gate "gate" is not "True", but False`},
			{corev1.ConditionTrue, "True  "},
		} {
			if c.gate != "" {
				patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"gate","status":%q}]}}`, c.gate)
				if _, err := pods.Patch(t.Context(), "p", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
			got, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			is := conditionOf(got, corev1.PodReady)
			if text := fmt.Sprintf("%s %s %s", is.Status, is.Reason, is.Message); got.Status.Phase != corev1.PodRunning || text != c.want {
				t.Errorf("gate %q: %s", c.gate, text)
			}
		}
	})
}

// Pods of a node that was lost stay not ready while it is, and are ready again with it, gates or not.
func TestPodsAreReadyAgainAfterTheirNodeWasLost(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, client *fake.Clientset) {
		time.Sleep(time.Second)
		pods := client.CoreV1().Pods("default")
		gated := boundPod("gated", "sim-1")
		gated.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "gate"}}
		gated.Status.Conditions = []corev1.PodCondition{{Type: "gate", Status: corev1.ConditionTrue}}
		for _, pod := range []*corev1.Pod{boundPod("p", "sim-1"), gated} {
			if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		lose := func(status corev1.ConditionStatus) {
			patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q}]}}`, status)
			if _, err := client.CoreV1().Nodes().Patch(t.Context(), "sim-1", types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		shown := func(name string) string {
			pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			c := conditionOf(pod, corev1.PodReady)
			return strings.TrimSpace(fmt.Sprintf("%s %s %s", c.Status, c.Reason, c.Message))
		}
		lose(corev1.ConditionUnknown)
		for _, name := range []string{"p", "gated"} {
			patch := []byte(`{"status":{"conditions":[{"type":"Ready","status":"False","reason":"NodeLost","message":"gone"}]}}`)
			if _, err := pods.Patch(t.Context(), name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if got := shown(name); got != "False NodeLost gone" {
				t.Errorf("%s while its node is lost: %s", name, got)
			}
		}
		time.Sleep(2 * defaultLeaseInterval)
		client.ClearActions()
		for _, name := range []string{"p", "gated"} {
			if got := shown(name); got != "True" {
				t.Errorf("%s after its node is back: %s", name, got)
			}
		}
		time.Sleep(2 * defaultLeaseInterval)
		for _, action := range client.Actions() {
			if action.GetVerb() == "patch" {
				t.Errorf("an unchanged world was written to: %v", action)
			}
		}
	})
}

// A resize is carried out if the node has what it asks for. Otherwise it waits until another pod gives something up, and one that
// asks for more than there is waits for ever.
func TestResizes(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, client *fake.Clientset) {
		time.Sleep(time.Second)
		pods := client.CoreV1().Pods("default")
		asking := func(cpu string) corev1.ResourceRequirements {
			return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
		}
		for _, name := range []string{"p", "other"} {
			pod := boundPod(name, "sim-1")
			pod.Spec.Containers[0].Resources = asking("10")
			if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		resize := func(name, cpu string) {
			pod, err := pods.Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			pod.Generation++
			pod.Spec.Containers[0].Resources = asking(cpu)
			if _, err := pods.Update(t.Context(), pod, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		check := func(cpu, reason string) {
			t.Helper()
			pod, err := pods.Get(t.Context(), "p", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			s, why := pod.Status.ContainerStatuses[0], ""
			if pending := conditionOf(pod, corev1.PodResizePending); pending != nil {
				why = pending.Reason
			}
			for _, got := range []corev1.ResourceList{s.AllocatedResources, s.Resources.Requests, pod.Status.AllocatedResources} {
				if got.Cpu().String() != cpu || why != reason || pod.Status.ObservedGeneration != pod.Generation {
					t.Errorf("it has %s, reason %q, want %s, %q", got.Cpu(), why, cpu, reason)
				}
			}
		}
		check("10", "") // of 32
		resize("p", "20")
		check("20", "")
		resize("p", "25")
		check("20", corev1.PodReasonDeferred)
		resize("other", "8")
		check("20", corev1.PodReasonDeferred)
		resize("other", "7")
		check("25", "")
		resize("p", "30")
		check("25", corev1.PodReasonDeferred)
		resize("p", "24")
		check("24", "")
		resize("p", "32")
		if err := pods.Delete(t.Context(), "other", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		check("32", "")
		resize("p", "33")
		check("32", corev1.PodReasonInfeasible)
		client.ClearActions()
		time.Sleep(2 * defaultLeaseInterval)
		for _, action := range client.Actions() {
			if action.GetVerb() == "patch" {
				t.Errorf("an unchanged world was written to: %v", action)
			}
		}
	})
}

func TestHowLongContainersRun(t *testing.T) {
	for _, c := range []struct {
		command, args []string
		want          time.Duration
		image         string
	}{
		{want: foreverRun, image: "registry.k8s.io/pause:3.10.1"},
		{want: foreverRun, image: "pause"},
		{[]string{"/pause", "-v"}, nil, DefaultRun, "registry.k8s.io/pause:3.10.1"},
		{want: DefaultRun, image: "pause/shop:1"},
		{[]string{"sleep", "300"}, nil, 5 * time.Minute, "i"},
		{[]string{"/bin/sleep"}, []string{"1.5"}, 1500 * time.Millisecond, "i"},
		{[]string{"sleep"}, []string{"infinity"}, foreverRun, "i"},
		{[]string{"sleep", "1e300"}, nil, foreverRun, "i"},
		{[]string{"sleep", "0.1"}, nil, DefaultRun, "i"},
		{[]string{"sleep", "-5"}, nil, DefaultRun, "i"},
		{[]string{"sleep", "nan"}, nil, DefaultRun, "i"},
		{[]string{"sleep", "5m"}, nil, DefaultRun, "i"},
		{[]string{"sleep"}, nil, DefaultRun, "i"},
		{[]string{"sh", "60"}, nil, DefaultRun, "i"},
	} {
		pod := boundPod("p", "sim-1")
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "sleeps", Image: c.image, Command: c.command, Args: c.args})
		if got := runs(pod); got != c.want {
			t.Errorf("%q %q: %v, want %v", c.command, c.args, got, c.want)
		}
		pod.Annotations = map[string]string{RunAnnotation: "7s"}
		if got := runs(pod); got != 7*time.Second {
			t.Errorf("%q %q with an annotation: %v", c.command, c.args, got)
		}
	}
}

func TestNodesRegisterAndRenew(t *testing.T) {
	inBubble(t, 20, func(t *testing.T, client *fake.Clientset) {
		time.Sleep(time.Second)
		nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(nodes.Items) != 20 {
			t.Fatalf("got %d nodes, %v; want 20", len(nodes.Items), err)
		}
		first := renewTimes(t, client)
		time.Sleep(2 * defaultLeaseInterval)
		for name, at := range renewTimes(t, client) {
			if !at.After(first[name]) {
				t.Errorf("lease of %s was not renewed", name)
			}
		}
	})
}

func renewTimes(t *testing.T, client *fake.Clientset) map[string]time.Time {
	t.Helper()
	leases, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]time.Time{}
	for _, l := range leases.Items {
		out[l.Name] = l.Spec.RenewTime.Time
	}
	return out
}

func TestNodeIsReadyAgainAfterItWasLost(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, client *fake.Clientset) {
		time.Sleep(time.Second)
		n, _ := client.CoreV1().Nodes().Get(t.Context(), "sim-1", metav1.GetOptions{})
		for i := range n.Status.Conditions {
			n.Status.Conditions[i].Status = corev1.ConditionUnknown
		}
		if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * defaultLeaseInterval)
		n, _ = client.CoreV1().Nodes().Get(t.Context(), "sim-1", metav1.GetOptions{})
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
				t.Errorf("Ready = %s", c.Status)
			}
		}
	})
}

// TestExtendedResources: what an administrator writes into the capacity, pods can have; what is taken out again, they cannot.
func TestExtendedResources(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, client *fake.Clientset) {
		nodes, dongle := client.CoreV1().Nodes(), corev1.ResourceName("example.com/dongle")
		for _, want := range []string{"10", "7", ""} {
			node, err := nodes.Get(t.Context(), "sim-1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			node = node.DeepCopy()
			delete(node.Status.Capacity, dongle)
			if want != "" {
				node.Status.Capacity[dongle] = resource.MustParse(want)
			}
			if _, err := nodes.UpdateStatus(t.Context(), node, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * defaultLeaseInterval)
			synctest.Wait()
			node, err = nodes.Get(t.Context(), "sim-1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			got, there := node.Status.Allocatable[dongle]
			if there != (want != "") || there && got.String() != want || node.Status.Allocatable.Cpu().String() != "32" {
				t.Errorf("want %q: allocatable %v", want, node.Status.Allocatable)
			}
		}
	})
}

func TestPodsRunAtOnceWithDistinctAddresses(t *testing.T) {
	inBubble(t, 2, func(t *testing.T, client *fake.Clientset) {
		start := time.Now()
		for i := range 30 {
			pod := boundPod(fmt.Sprintf("p%d", i), fmt.Sprintf("sim-%d", i%2+1))
			if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if d := time.Since(start); d != 0 {
			t.Errorf("took %v of virtual time, want none", d)
		}
		seen := map[string]string{}
		pods, _ := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		for _, p := range pods.Items {
			if p.Status.Phase != corev1.PodRunning || !p.Status.ContainerStatuses[0].Ready {
				t.Errorf("%s: phase %q", p.Name, p.Status.Phase)
			}
			if other, dup := seen[p.Status.PodIP]; dup {
				t.Errorf("%s and %s share %s", p.Name, other, p.Status.PodIP)
			}
			seen[p.Status.PodIP] = p.Name
		}
	})
}

func TestDeletionIsConfirmed(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, client *fake.Clientset) {
		pod := boundPod("p", "sim-1")
		now := metav1.Now()
		pod.DeletionTimestamp, pod.Finalizers = &now, []string{"test/keep-until-deleted"}
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, a := range client.Actions() {
			if a.GetVerb() == "delete" && a.GetResource().Resource == "pods" {
				return
			}
		}
		t.Error("the pod was not deleted")
	})
}

func TestPodsOfOtherNodesAreLeftAlone(t *testing.T) {
	inBubble(t, 1, func(t *testing.T, client *fake.Clientset) {
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), boundPod("p", "real"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		p, _ := client.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
		if p.Status.Phase != "" {
			t.Errorf("phase = %q", p.Status.Phase)
		}
	})
}

func TestAddressesStayAndComeBack(t *testing.T) {
	a := newAddresses()
	first := a.assign("n", "u1", "10.42.3.0/24", 0)
	if first != "10.42.3.1" {
		t.Errorf("first = %s", first)
	}
	if again := a.assign("n", "u1", "", 0); again != first {
		t.Errorf("again = %s, want %s", again, first)
	}
	if second := a.assign("n", "u2", "10.42.3.0/24", 0); second != "10.42.3.2" {
		t.Errorf("second = %s", second)
	}
	a.release("n", "u1")
	for i := range 251 {
		a.assign("n", types.UID(fmt.Sprint("x", i)), "10.42.3.0/24", 0)
	}
	a.assign("n", "y1", "10.42.3.0/24", 0)
	if reused := a.assign("n", "y2", "10.42.3.0/24", 0); reused != first {
		t.Errorf("reused = %s, want the released %s", reused, first)
	}
}

// TestSecondAddress: a pod has the same number in both ranges of its node.
func TestSecondAddress(t *testing.T) {
	for _, c := range [][4]string{
		{"10.42.3.0/24", "fd42:0:0:3::/64", "10.42.3.7", "fd42:0:0:3::7"}, {"10.42.0.64/26", "fd42::f0/124", "10.42.0.65", "fd42::f1"},
	} {
		if got := second(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%v: %s", c, got)
		}
	}
}
