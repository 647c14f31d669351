package scheduler

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/podkey"
)

func TestMessages(t *testing.T) {
	tainted := func(n *corev1.Node) *corev1.Node {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
		return n
	}
	cordoned := func(n *corev1.Node) *corev1.Node {
		n.Spec.Unschedulable = true
		return n
	}
	tests := []struct {
		name  string
		nodes []*corev1.Node
		pods  []*corev1.Pod
		pod   *corev1.Pod
		want  string
	}{
		{name: "no nodes", pod: testPod("a", "1", ""), want: "no nodes available to schedule pods"},
		{
			name:  "memory to free",
			nodes: []*corev1.Node{testNode("node-1", "z", "4", "1Gi"), testNode("node-2", "z", "4", "1Gi")},
			pods:  []*corev1.Pod{bound(testPod("x", "", "900Mi"), "node-1"), bound(testPod("y", "", "700Mi"), "node-2")},
			pod:   testPod("a", "1", "524Mi"),
			want:  "0/2 nodes are available: 2 Insufficient memory. It would fit on node-2 if 200Mi memory were freed.",
		},
		{
			name:  "most frequent reason first",
			nodes: []*corev1.Node{testNode("node-1", "z", "1", "1Gi"), testNode("node-2", "z", "1", "1Gi"), tainted(testNode("node-3", "z", "4", "8Gi"))},
			pod:   testPod("a", "2", ""),
			want:  "0/3 nodes are available: 2 Insufficient cpu, 1 node(s) had untolerated taint(s). It would fit on node-3 if the pod tolerated taint dedicated=gpu:NoSchedule.",
		},
		{
			name:  "too large for any node",
			nodes: []*corev1.Node{testNode("node-1", "z", "1", "1Gi"), testNode("node-2", "z", "2", "1Gi")},
			pod:   testPod("a", "2500m", "2Gi"),
			want:  "0/2 nodes are available: 2 Insufficient cpu, 2 Insufficient memory. It would fit on node-1 if the pod requested at most 1 cpu and the pod requested at most 1Gi memory.",
		},
		{
			name:  "two steps on the only node",
			nodes: []*corev1.Node{cordoned(tainted(testNode("node-1", "z", "4", "1Gi")))},
			pod:   testPod("a", "", ""),
			want:  "0/1 nodes are available: 1 node(s) were unschedulable. It would fit on node-1 if it were uncordoned and the pod tolerated taint dedicated=gpu:NoSchedule.",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(tt.nodes...)
			for _, p := range tt.pods {
				b.setPod(p)
			}
			for range 2 { // the second answer comes from the class
				if got := b.try(tt.pod); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			}
		})
	}
}

func TestPinnedPodExplainsItself(t *testing.T) {
	b := newBench(nodesNamed(3)...)
	pod := testPod("daemon", "64", "")
	pod.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"node-001"}}},
		}}},
	}}
	want := "0/3 nodes are available: 2 node(s) didn't match Pod's node affinity/selector, 1 Insufficient cpu." +
		" It would fit on node-001 if the pod requested at most 32 cpu."
	if got := b.try(pod); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	pod.Spec.Containers[0].Resources.Requests = nil
	if got := b.try(pod); got != "node-001" {
		t.Errorf("got %s, want node-001", got)
	}
}

func TestEmptyNodesShareTheLoad(t *testing.T) {
	b := newBench(nodesNamed(10)...)
	counts := map[string]int{}
	for i := range 100 {
		counts[b.try(testPod(fmt.Sprint("p", i), "", ""))]++
	}
	for name, n := range counts {
		if n != 10 {
			t.Errorf("%s got %d pods, want 10", name, n)
		}
	}
}

func TestDefaultSpreadingOverZones(t *testing.T) {
	nodes := []*corev1.Node{testNode("a1", "a", "32", "64Gi"), testNode("a2", "a", "32", "64Gi"), testNode("a3", "a", "32", "64Gi"), testNode("b1", "b", "32", "64Gi")}
	b := newBench(nodes...)
	zones := map[string]int{}
	for i := range 4 {
		pod := plugin.NewPod(testPod(fmt.Sprint("p", i), "1m", "1Mi"))
		node, err := b.engine.place(pod, podkey.Of(pod.Pod), labels.SelectorFromSet(labels.Set{"app": "web"}))
		if err != nil {
			t.Fatal(err)
		}
		b.assume(pod, node)
		zones[node.Labels[corev1.LabelTopologyZone]]++
	}
	if zones["b"] == 0 || zones["a"] == 0 {
		t.Errorf("pods by zone: %v, want both used", zones)
	}
}

// BenchmarkPlace is the pure part: five Deployments, together 5,000 pods.
func BenchmarkPlace(b *testing.B) {
	for _, nodes := range []int{100, 5000} {
		b.Run(fmt.Sprint(nodes, "-nodes"), func(b *testing.B) {
			pods := deployments(5, 1000)
			for b.Loop() {
				world := newBench(nodesNamed(nodes)...)
				for _, pod := range pods {
					p := plugin.NewPod(pod)
					node, err := world.engine.place(p, podkey.Of(pod), labels.SelectorFromSet(pod.Labels))
					if err != nil {
						b.Fatal(err)
					}
					world.assume(p, node)
				}
			}
			b.ReportMetric(5000*float64(b.N)/b.Elapsed().Seconds(), "pods/s")
		})
	}
}

// deployments makes the pods of n Deployments.
func deployments(n, pods int) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range n * pods {
		pod := testPod(fmt.Sprint("p", i), "100m", "100Mi")
		pod.Labels["app"] = fmt.Sprint("app-", i%n)
		all = append(all, pod)
	}
	return all
}

// BenchmarkBind is the whole way through queue, engine and binder, over 100 nodes, with bindings that cost nothing.
func BenchmarkBind(b *testing.B) {
	client := fake.NewSimpleClientset()
	client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, nil })
	pods := deployments(5, 1000)
	for b.Loop() {
		s := newScheduler(Config{Client: client, Informers: informers.NewSharedInformerFactory(client, 0)})
		s.report.recorders = map[string]record.EventRecorder{corev1.DefaultSchedulerName: &record.FakeRecorder{}}
		for _, n := range nodesNamed(100) {
			s.nodeChanged(n)
		}
		for _, pod := range pods {
			s.podChanged(pod)
		}
		for range pods {
			t, _ := s.queue.pop(b.Context(), nil)
			s.schedule(b.Context(), t)
		}
		s.binder.wait()
		s.report.queue.ShutDown()
		if len(s.cache.pods) != len(pods) {
			b.Fatalf("%d pods placed, want %d", len(s.cache.pods), len(pods))
		}
		client.ClearActions()
	}
	b.ReportMetric(5000*float64(b.N)/b.Elapsed().Seconds(), "pods/s")
}
