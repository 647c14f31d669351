package node

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
)

// told takes the reasons of the events since the last call, in order of the alphabet.
func told(events *record.FakeRecorder) string {
	var reasons []string
	for {
		select {
		case event := <-events.Events:
			reasons = append(reasons, strings.Fields(event)[1])
		default:
			slices.Sort(reasons)
			return strings.Join(reasons, " ")
		}
	}
}

// TestNodeTellsWhatBecomesOfIt: 'kubectl describe node' shows what a kubelet tells of its Node.
func TestNodeTellsWhatBecomesOfIt(t *testing.T) {
	events := record.NewFakeRecorder(100)
	var low atomic.Bool
	cfg := Config{Events: events, Enforced: true, Pressure: func() []corev1.NodeConditionType {
		if low.Load() {
			return []corev1.NodeConditionType{corev1.NodeMemoryPressure}
		}
		return nil
	}}
	inBubble(t, cfg, nil, func(t *testing.T, client *fake.Clientset, changed chan<- struct{}) {
		expectTold(t, events, "registration", "NodeAllocatableEnforced NodeHasNoDiskPressure NodeHasSufficientMemory NodeHasSufficientPID NodeReady Starting")
		time.Sleep(time.Hour)
		expectTold(t, events, "an hour of quiet", "")
		for _, cordon := range []bool{true, false} {
			node := getNode(t, client)
			node.Spec.Unschedulable = cordon
			if _, err := client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			changed <- struct{}{}
			time.Sleep(2 * answerPause)
			synctest.Wait()
			expectTold(t, events, "cordon", map[bool]string{true: "NodeNotSchedulable", false: "NodeSchedulable"}[cordon])
		}
		low.Store(true)
		time.Sleep(time.Minute)
		expectTold(t, events, "pressure", "NodeHasInsufficientMemory")
	})
}

// TestRebootIsTold: a machine that comes back with another boot is told of, and an agent that is started anew on the same boot is not.
func TestRebootIsTold(t *testing.T) {
	for boot, want := range map[string]string{"another": "Rebooted", readMachine(t.TempDir()).bootID: ""} {
		events := record.NewFakeRecorder(100)
		old := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{BootID: boot}}}
		inBubble(t, Config{Events: events}, []runtime.Object{old}, func(t *testing.T, _ *fake.Clientset, _ chan<- struct{}) {
			if got := told(events); strings.Contains(got, "Rebooted") != (want != "") {
				t.Errorf("boot %s: %s", boot, got)
			}
		})
	}
}

func expectTold(t *testing.T, events *record.FakeRecorder, after, want string) {
	t.Helper()
	if got := told(events); got != want {
		t.Errorf("after %s: %q, want %q", after, got, want)
	}
}

// TestCordonBetweenReadAndWrite: the answer to the agent's own write is the first that shows it.
func TestCordonBetweenReadAndWrite(t *testing.T) {
	events, client := record.NewFakeRecorder(100), fake.NewClientset()
	var armed atomic.Bool
	client.PrependReactor("patch", "nodes", func(ktesting.Action) (bool, runtime.Object, error) {
		if armed.CompareAndSwap(true, false) {
			cordon(t, client)
		}
		return false, nil, nil
	})
	inBubble(t, Config{Events: events, Client: client}, nil, func(t *testing.T, _ *fake.Clientset, _ chan<- struct{}) {
		told(events)
		armed.Store(true)
		time.Sleep(time.Hour)
		expectTold(t, events, "the next report", "NodeNotSchedulable")
	})
}

// cordon makes the only node unschedulable.
func cordon(t *testing.T, client *fake.Clientset) {
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	list, err := client.Tracker().List(nodes, corev1.SchemeGroupVersion.WithKind("Node"), "")
	if err != nil {
		t.Error(err)
		return
	}
	node := list.(*corev1.NodeList).Items[0].DeepCopy()
	node.Spec.Unschedulable = true
	if err := client.Tracker().Update(nodes, node, ""); err != nil {
		t.Error(err)
	}
}
