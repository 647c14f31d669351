package scheduler

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/podkey"
)

// generated is a world that changes at random, and the plain model it is judged by.
type generated struct {
	*rand.Rand
	bench
	objects map[string]*corev1.Node // by name, what the cache was told last
	placed  map[types.UID]*corev1.Pod
	serial  int
	// preempted counts how often room was made.
	preempted int
}

// TestGeneratedWorlds places pods in worlds that change under it. After each placement a plain model checks the rules;
// and an engine without any memory must come to the same result as the one that keeps classes.
func TestGeneratedWorlds(t *testing.T) {
	preempted := 0
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := &generated{Rand: rand.New(rand.NewPCG(seed, 1)), bench: newBench(), objects: map[string]*corev1.Node{}, placed: map[types.UID]*corev1.Pod{}}
			for range 200 {
				g.step(t)
			}
			g.checkSums(t)
			preempted += g.preempted
		})
	}
	if preempted == 0 {
		t.Error("no world ever came to a preemption")
	}
}

func (g *generated) step(t *testing.T) {
	switch n := g.IntN(20); {
	case n < 2:
		g.changeNode()
	case n == 2:
		g.removeNode()
	case n < 6:
		g.removePod()
	default:
		g.placePod(t)
	}
}

func (g *generated) changeNode() {
	name := fmt.Sprintf("node-%d", g.IntN(8))
	n := testNode(name, fmt.Sprint("zone-", g.IntN(3)), fmt.Sprint(1+g.IntN(4)), fmt.Sprint(1+g.IntN(8), "Gi"))
	n.Spec.Unschedulable = g.IntN(8) == 0
	if g.IntN(3) == 0 {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule}}
	}
	if g.IntN(2) == 0 {
		n.Status.Images = []corev1.ContainerImage{{Names: []string{"web:latest"}, SizeBytes: 500 << 20}}
	}
	if g.IntN(2) == 0 {
		n.Status.DeclaredFeatures = []string{"RestartAllContainersOnContainerExits"}
	}
	g.objects[name] = n
	g.setNode(n)
}

func (g *generated) removeNode() {
	name := fmt.Sprintf("node-%d", g.IntN(8))
	delete(g.objects, name)
	g.bench.removeNode(name)
}

func (g *generated) removePod() {
	for uid := range g.placed { // any; map order only adds variety
		delete(g.placed, uid)
		g.bench.removePod(uid)
		return
	}
}

// newPod makes one of a few dozen shapes, so that classes are met again.
func (g *generated) newPod() *corev1.Pod {
	g.serial++
	pod := testPod(fmt.Sprint("pod-", g.serial), fmt.Sprint(100*(1+g.IntN(3)), "m"), "256Mi")
	pod.Labels["app"] = fmt.Sprint("app-", g.IntN(3))
	same := &metav1.LabelSelector{MatchLabels: map[string]string{"app": pod.Labels["app"]}}
	term := corev1.PodAffinityTerm{TopologyKey: []string{corev1.LabelHostname, corev1.LabelTopologyZone}[g.IntN(2)], LabelSelector: same}
	if g.IntN(4) == 0 {
		important := int32(1 + g.IntN(3))
		pod.Spec.Priority = &important
	}
	switch g.IntN(10) {
	case 9:
		source := &corev1.ImageVolumeSource{Reference: []string{"web:latest", "other:v1"}[g.IntN(2)]}
		pod.Spec.Volumes = []corev1.Volume{{Name: "image", VolumeSource: corev1.VolumeSource{Image: source}}}
	case 7:
		disk := &corev1.GCEPersistentDiskVolumeSource{PDName: fmt.Sprint("disk-", g.IntN(3)), ReadOnly: g.IntN(2) == 0}
		pod.Spec.Volumes = []corev1.Volume{{Name: "disk", VolumeSource: corev1.VolumeSource{GCEPersistentDisk: disk}}}
	case 8:
		pod.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
	case 0:
		pod.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 8080, ContainerPort: 8080}}
	case 1:
		pod.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	case 2:
		pod.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: same}}
	case 3:
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	case 4:
		pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
	case 5:
		pod.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: fmt.Sprint("zone-", g.IntN(3))}
	}
	return pod
}

func (g *generated) placePod(t *testing.T) {
	object := g.newPod()
	pod, key := plugin.NewPod(object), podkey.Of(object)
	spread := labels.SelectorFromSet(labels.Set{"app": object.Labels["app"]})
	forgetful := newEngine(g.cache, g.engine.profile)
	forgetful.round = g.round
	node, err := g.engine.place(pod, key, spread)
	again, errAgain := forgetful.place(pod, key, spread)
	if node != again || fmt.Sprint(err) != fmt.Sprint(errAgain) {
		t.Fatalf("%s: with classes %v %v, without %v %v", pod.Name, node, err, again, errAgain)
	}
	if node == nil {
		if node = g.makeRoom(t, pod, key, spread, err); node == nil {
			return
		}
	}
	g.checkPlacement(t, object, g.objects[node.Name])
	g.assume(pod, node)
	g.placed[object.UID] = bound(object, node.Name)
	if g.IntN(3) > 0 {
		g.setPod(g.placed[object.UID])
	}
}

// makeRoom preempts for a pod that fits nowhere; with the victims gone it must fit on the node promised to it, and no
// victim may have been spared without need.
func (g *generated) makeRoom(t *testing.T, pod *plugin.Pod, key podkey.Key, spread labels.Selector, err error) *plugin.Node {
	t.Helper()
	var fit *FitError
	if !errors.As(err, &fit) || fit.Nodes == 0 || pod.Priority() == 0 {
		return nil
	}
	chosen := g.preempt(pod, fit, nil)
	if chosen == nil {
		return nil
	}
	g.preempted++
	name := chosen.node.Name
	g.nominate(pod, name)
	for _, victim := range chosen.victims {
		if victim.Priority() >= pod.Priority() {
			t.Errorf("%s: victim %s is as important", pod.Name, victim.Name)
		}
		delete(g.placed, victim.UID)
		g.bench.removePod(victim.UID)
	}
	node, err := g.engine.place(pod, key, spread)
	if err != nil || node.Name != name {
		t.Fatalf("%s: promised %s, got %v %v", pod.Name, name, node, err)
	}
	g.denominate(pod.UID)
	return node
}

// checkPlacement judges one placement by the rules alone, before it is counted.
func (g *generated) checkPlacement(t *testing.T, pod *corev1.Pod, node *corev1.Node) {
	t.Helper()
	if node == nil {
		t.Fatalf("%s: placed on a node that is gone", pod.Name)
	}
	used := pod.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
	for _, other := range g.placed {
		g.checkNeighbour(t, pod, other, node)
		if other.Spec.NodeName == node.Name {
			used += other.Spec.Containers[0].Resources.Requests.Cpu().MilliValue()
		}
	}
	if have := node.Status.Allocatable.Cpu().MilliValue(); used > have {
		t.Errorf("%s: %s would hold %dm of %dm cpu", pod.Name, node.Name, used, have)
	}
	if node.Spec.Unschedulable || len(node.Spec.Taints) > 0 && len(pod.Spec.Tolerations) == 0 {
		t.Errorf("%s: placed on tainted or cordoned %s", pod.Name, node.Name)
	}
	if zone := pod.Spec.NodeSelector[corev1.LabelTopologyZone]; zone != "" && zone != node.Labels[corev1.LabelTopologyZone] {
		t.Errorf("%s: placed outside of %s", pod.Name, zone)
	}
}

func (g *generated) checkNeighbour(t *testing.T, pod, other *corev1.Pod, node *corev1.Node) {
	t.Helper()
	if other.Spec.NodeName == node.Name && len(pod.Spec.Containers[0].Ports) > 0 && len(other.Spec.Containers[0].Ports) > 0 {
		t.Errorf("%s: host port taken by %s", pod.Name, other.Name)
	}
	otherNode := g.objects[other.Spec.NodeName]
	if otherNode == nil || pod.Labels["app"] != other.Labels["app"] {
		return
	}
	for _, p := range []*corev1.Pod{pod, other} {
		if p.Spec.Affinity == nil || p.Spec.Affinity.PodAntiAffinity == nil {
			continue
		}
		key := p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey
		if node.Labels[key] == otherNode.Labels[key] {
			t.Errorf("%s: shares %s with %s against the anti-affinity of %s", pod.Name, key, other.Name, p.Name)
		}
	}
}

// checkSums compares what the cache counts with what is there.
func (g *generated) checkSums(t *testing.T) {
	want := map[string]plugin.Resources{}
	for _, p := range g.placed {
		sum := want[p.Spec.NodeName]
		sum.Add(plugin.NewPod(p).Requests, 1)
		want[p.Spec.NodeName] = sum
	}
	for _, n := range g.nodes {
		if n != nil && !n.Requested.Equal(want[n.Name]) {
			t.Errorf("%s counts %+v, want %+v", n.Name, n.Requested, want[n.Name])
		}
	}
	if len(g.pods) != len(g.placed) {
		t.Errorf("%d pods counted, want %d", len(g.pods), len(g.placed))
	}
}
