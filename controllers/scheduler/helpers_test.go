package scheduler

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/podkey"
	"github.com/setpoint-io/setpoint/controllers/scheduler/profile"
)

// testNode makes a node with the given CPU and memory, 110 pods, and labels for host and zone.
func testNode(name, zone, cpu, memory string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, corev1.LabelTopologyZone: zone}},
		Status:     corev1.NodeStatus{Allocatable: resources("cpu", cpu, "memory", memory, "pods", "110")},
	}
}

// testPod makes a pending pod that requests the given amounts; empty ones are left out.
func testPod(name, cpu, memory string) *corev1.Pod {
	requests := corev1.ResourceList{}
	if cpu != "" {
		requests[corev1.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		requests[corev1.ResourceMemory] = resource.MustParse(memory)
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{
			SchedulerName: corev1.DefaultSchedulerName,
			Containers:    []corev1.Container{{Name: "main", Image: "web", Resources: corev1.ResourceRequirements{Requests: requests}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

func resources(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// The waits and limits of the default profile.
const (
	preemptNodes  = 100
	backoffMin    = time.Second
	backoffMax    = 10 * time.Second
	volumeWaitMax = 10 * time.Minute
)

// testQueue has the waits of the default profile.
func testQueue(loop *numbers.Loop) *queue {
	return newQueue(loop, (*numbers.Ledger)(nil).Series(), clock.RealClock{}, backoffMin, backoffMax)
}

// bound gives a copy of the pod that runs on the node.
func bound(pod *corev1.Pod, node string) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.NodeName = node
	return pod
}

// bench is a cache with an engine, without the loop around them.
type bench struct {
	*cache
	*engine
}

func newBench(nodes ...*corev1.Node) bench {
	c := newCache()
	for _, n := range nodes {
		c.setNode(n)
	}
	return bench{c, newEngine(c, &profile.Default().Profiles[0])}
}

// try places and assumes the pod; it gives the node's name, or the message.
func (b bench) try(pod *corev1.Pod) string {
	p := plugin.NewPod(pod)
	node, err := b.place(p, podkey.Of(pod), nil)
	if err != nil {
		return err.Error()
	}
	b.assume(p, node)
	return node.Name
}

// place resolves the name both embedded types have.
func (b bench) place(pod *plugin.Pod, key podkey.Key, spread labels.Selector) (*plugin.Node, error) {
	return b.engine.place(pod, key, spread)
}

func nodesNamed(n int) []*corev1.Node {
	var nodes []*corev1.Node
	for i := range n {
		nodes = append(nodes, testNode(fmt.Sprintf("node-%03d", i), fmt.Sprintf("zone-%d", i%3), "32", "64Gi"))
	}
	return nodes
}
