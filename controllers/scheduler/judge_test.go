package scheduler

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/controllers/scheduler/profile"
)

// judged is a Judgement of the first pod over informers that hold all objects.
func judged(t *testing.T, pod *corev1.Pod, nodes []*corev1.Node, others ...*corev1.Pod) Judgement {
	t.Helper()
	return judgedBy(t, profile.Config{}, pod, nodes, others...)
}

// judgedBy is judged with profiles.
func judgedBy(t *testing.T, profiles profile.Config, pod *corev1.Pod, nodes []*corev1.Node, others ...*corev1.Pod) Judgement {
	t.Helper()
	factory := informers.NewSharedInformerFactory(fake.NewSimpleClientset(), 0)
	for _, node := range nodes {
		if err := factory.Core().V1().Nodes().Informer().GetStore().Add(node); err != nil {
			t.Fatal(err)
		}
	}
	for _, other := range others {
		if err := factory.Core().V1().Pods().Informer().GetStore().Add(other); err != nil {
			t.Fatal(err)
		}
	}
	j, err := NewJudge(Config{Informers: factory, Profiles: profiles}).Pod(pod)
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// TestJudgeAsksEveryPlugin: one node with room and a taint, one that is full and cordoned; each plugin answers for each.
func TestJudgeAsksEveryPlugin(t *testing.T) {
	tainted, full := testNode("a", "z", "4", "8Gi"), testNode("b", "z", "4", "8Gi")
	tainted.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}
	full.Spec.Unschedulable = true
	j := judged(t, testPod("p", "2", "1Gi"), []*corev1.Node{tainted, full}, bound(testPod("other", "3", "1Gi"), "b"))
	said := map[string][]string{}
	for _, verdict := range j.Nodes {
		for _, r := range verdict.Rejections {
			said[verdict.Node.Name] = append(said[verdict.Node.Name], r.Plugin)
		}
	}
	if got := strings.Join(said["a"], " ") + "; " + strings.Join(said["b"], " "); got != "TaintToleration; NodeUnschedulable NodeResourcesFit" {
		t.Error(got)
	}
	if j.Nodes[0].FreeMilliCPU+j.Nodes[1].FreeMilliCPU != 5000 {
		t.Errorf("free CPU: %+v", j.Nodes)
	}
	if !strings.Contains(j.Message, "0/2 nodes are available") || j.Hint != "It would fit on a if the pod tolerated taint k=v:NoSchedule." {
		t.Errorf("%s\n%s", j.Message, j.Hint)
	}
}

// TestJudgeCatchesUp: what came, changed and went since the last question counts in the next, as in a Judge that is new.
func TestJudgeCatchesUp(t *testing.T) {
	factory := informers.NewSharedInformerFactory(fake.NewSimpleClientset(), 0)
	nodes, pods := factory.Core().V1().Nodes().Informer().GetStore(), factory.Core().V1().Pods().Informer().GetStore()
	cordoned := testNode("a", "z", "4", "8Gi")
	cordoned.Spec.Unschedulable = true
	moved := bound(testPod("one", "3", "1Gi"), "b")
	over := bound(testPod("two", "3", "1Gi"), "b")
	over.Status.Phase = corev1.PodSucceeded
	steps := []struct {
		change func(any) error
		object any
		want   string
	}{
		{nodes.Add, testNode("a", "z", "4", "8Gi"), ""},
		{pods.Add, bound(testPod("one", "3", "1Gi"), "a"), "0/1 nodes are available: 1 Insufficient cpu."},
		{nodes.Add, testNode("b", "z", "4", "8Gi"), ""},
		{pods.Add, bound(testPod("two", "3", "1Gi"), "b"), "0/2 nodes are available: 2 Insufficient cpu."},
		{pods.Update, over, ""},
		{pods.Update, moved, ""},
		{nodes.Update, cordoned, "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable."},
		{pods.Delete, moved, ""},
		{nodes.Delete, testNode("b", "z", "4", "8Gi"), "0/1 nodes are available: 1 node(s) were unschedulable."},
	}
	kept := NewJudge(Config{Informers: factory})
	for i, step := range steps {
		if err := step.change(step.object); err != nil {
			t.Fatal(err)
		}
		again, err := kept.Pod(testPod("p", "2", "1Gi"))
		fresh, freshErr := NewJudge(Config{Informers: factory}).Pod(testPod("p", "2", "1Gi"))
		if err != nil || freshErr != nil || again.Message != fresh.Message || !strings.HasPrefix(again.Message, step.want) || (step.want == "") != (again.Message == "") {
			t.Errorf("step %d: %v %v\n%s\n%s, want\n%s", i, err, freshErr, again.Message, fresh.Message, step.want)
		}
	}
}

// TestJudgeAgreesWithTheEngine: the message is the one that the engine gives for the same world.
func TestJudgeAgreesWithTheEngine(t *testing.T) {
	nodes := nodesNamed(5)
	big, blocked := testPod("big", "64", "1Gi"), testPod("blocked", "1", "1Gi")
	blocked.Spec.NodeSelector = map[string]string{"disk": "fast"}
	for _, pod := range []*corev1.Pod{big, blocked, testPod("fits", "1", "1Gi")} {
		b := newBench(nodes...)
		placed, j := b.try(pod), judged(t, pod, nodes)
		if _, fits := b.cache.slots[placed]; fits != (j.Message == "") || !fits && placed != j.Message {
			t.Errorf("%s: the engine: %s\nJudge: %s", pod.Name, placed, j.Message)
		}
	}
}

// TestJudgeOfAMissingClaim: no node can help, so none is named.
func TestJudgeOfAMissingClaim(t *testing.T) {
	pod := testPod("p", "1", "")
	pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}
	j := judged(t, pod, nodesNamed(1))
	if j.Refusal != `persistentvolumeclaim "data" not found` || len(j.Nodes) != 0 || !strings.Contains(j.Message, "0/1 nodes") {
		t.Errorf("%+v", j)
	}
}
