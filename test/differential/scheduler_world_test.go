package differential

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// placement is a world in which pods wait for nodes.
type placement struct {
	*generator
	// ease is 1 in worlds where little fits, and large where nearly all does, so that scores are compared.
	ease            int
	nodes           []*corev1.Node
	placed, pending []*corev1.Pod
	others          []runtime.Object
	reserved        map[string]bool // the claims that have a volume
	serial          int
}

const (
	placementNodesMax  = 7
	placementPodsMax   = 16
	placementPending   = 6
	placementClaims    = 6
	placementVolumes   = 6
	placementNamespace = "n0"
)

func newPlacement(g *generator) *placement {
	w := &placement{generator: g, ease: pick(g, 1, 8), reserved: map[string]bool{}}
	for i := range 2 {
		w.others = append(w.others, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: w.labels("team")}})
	}
	for i := range 1 + g.IntN(placementNodesMax) {
		w.nodes = append(w.nodes, w.node(i))
	}
	w.addOwners()
	w.addStorage()
	for range g.IntN(placementPodsMax) {
		p := w.pod()
		p.Spec.NodeName = pick(g, w.nodes...).Name
		if g.chance(6) {
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: time.Unix(1e9, 0)}, []string{"example.com/held"}
		}
		w.placed = append(w.placed, p)
	}
	for range placementPending {
		w.pending = append(w.pending, w.pod())
	}
	w.addDevices()
	w.addDrivers()
	return w
}

func (w *placement) objects() []runtime.Object {
	all := w.others
	for _, node := range w.nodes {
		all = append(all, node)
	}
	for _, pod := range w.placed {
		all = append(all, pod)
	}
	for _, pod := range w.pending {
		all = append(all, pod)
	}
	return all
}

// describe writes the pod and the world around it.
func (w *placement) describe(pod *corev1.Pod) string {
	var text strings.Builder
	for _, o := range append([]runtime.Object{pod}, w.objects()...) {
		if p, is := o.(*corev1.Pod); is && p.Spec.NodeName == "" && p != pod {
			continue
		}
		y, err := yaml.Marshal(o)
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&text, "---\n%s", y)
	}
	return text.String()
}

func (w *placement) meta(name string) metav1.ObjectMeta {
	w.serial++
	return metav1.ObjectMeta{Namespace: placementNamespace, Name: name, UID: types.UID(fmt.Sprint("uid-", w.serial))}
}

// labels has some of the keys, with few values.
func (w *placement) labels(keys ...string) map[string]string {
	labels := map[string]string{}
	for _, key := range keys {
		if !w.chance(4) {
			labels[key] = fmt.Sprint("v", w.IntN(3))
		}
	}
	return labels
}

func (w *placement) quantity(list ...string) resource.Quantity {
	return resource.MustParse(pick(w.generator, list...))
}

func (w *placement) node(i int) *corev1.Node {
	n := &corev1.Node{ObjectMeta: w.meta(fmt.Sprint("node-", i))}
	n.Namespace, n.Labels = "", w.labels(corev1.LabelTopologyZone, corev1.LabelTopologyRegion, "disk")
	if !w.chance(10) {
		n.Labels[corev1.LabelHostname] = n.Name
	}
	n.Spec.Unschedulable = w.chance(8 * w.ease)
	for range w.IntN(3) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{
			Key: pick(w.generator, "a", "b"), Value: pick(w.generator, "", "1", "2", "30"),
			Effect: pick(w.generator, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute),
		})
		if w.ease > 1 {
			n.Spec.Taints[len(n.Spec.Taints)-1].Effect = corev1.TaintEffectPreferNoSchedule
		}
	}
	n.Status.Allocatable = corev1.ResourceList{
		corev1.ResourceCPU: w.quantity("500m", "2", "4", "7777m"), corev1.ResourceMemory: w.quantity("256Mi", "2Gi", "5Gi", "6000000001"),
		corev1.ResourcePods: w.quantity("2", "5", "110"),
	}
	if w.ease > 1 {
		n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: w.quantity("9", "15", "31111m"),
			corev1.ResourceMemory: w.quantity("9Gi", "15Gi", "60000000001"), corev1.ResourcePods: w.quantity("110")}
	}
	for _, name := range []corev1.ResourceName{corev1.ResourceEphemeralStorage, "example.com/gpu", "hugepages-2Mi"} {
		if w.chance(2) || w.ease > 1 {
			n.Status.Allocatable[name] = w.quantity("0", "2", "4Mi", "1Gi", "10Gi")
		}
	}
	for _, image := range images {
		if w.chance(2) {
			n.Status.Images = append(n.Status.Images, corev1.ContainerImage{
				Names: []string{"docker.io/library/" + image, image}, SizeBytes: int64(1+w.IntN(2000)) << 20,
			})
		}
	}
	if w.chance(3) {
		n.Status.DeclaredFeatures = []string{"RestartAllContainersOnContainerExits"}
	}
	return n
}

var images = []string{"web:v1", "db:v2", "tool:latest"}

// addOwners are what spreads pods by default.
func (w *placement) addOwners() {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "v0"}}
	w.others = append(w.others, &appsv1.ReplicaSet{ObjectMeta: w.meta("rs"), Spec: appsv1.ReplicaSetSpec{Selector: selector}})
	w.others = append(w.others, &appsv1.StatefulSet{ObjectMeta: w.meta("sts"), Spec: appsv1.StatefulSetSpec{Selector: selector}})
	w.others = append(w.others, &corev1.ReplicationController{
		ObjectMeta: w.meta("rc"), Spec: corev1.ReplicationControllerSpec{Selector: map[string]string{"app": "v1"}},
	})
	for i := range w.IntN(3) {
		service := &corev1.Service{ObjectMeta: w.meta(fmt.Sprint("service-", i))}
		service.Spec.Selector = w.labels("app", "tier")
		w.others = append(w.others, service)
	}
}

func (w *placement) pod() *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: w.meta(fmt.Sprint("pod-", w.serial))}
	p.Namespace = pick(w.generator, placementNamespace, placementNamespace, "n1")
	p.Labels = w.labels("app", "tier")
	p.Status.Phase = corev1.PodPending
	w.own(p)
	w.addContainers(p)
	w.addAffinity(p)
	for range w.IntN(2) * w.IntN(3) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, w.constraint())
	}
	for range w.IntN(3) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{
			Key: pick(w.generator, "a", "b", corev1.TaintNodeUnschedulable), Operator: pick(w.generator, "", corev1.TolerationOpEqual, corev1.TolerationOpExists),
			Effect: pick(w.generator, "", corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute),
		})
		if last := &p.Spec.Tolerations[len(p.Spec.Tolerations)-1]; last.Operator != corev1.TolerationOpExists {
			last.Value = pick(w.generator, "", "1", "2")
		}
	}
	if w.chance(3 * w.ease) {
		p.Spec.NodeSelector = w.labels("disk")
	}
	if w.chance(4) {
		p.Spec.Priority = new(int32(w.IntN(3)))
	}
	for i := range w.IntN(2) * w.IntN(3) {
		p.Spec.Volumes = append(p.Spec.Volumes, w.volume(i))
	}
	return p
}

func (w *placement) own(p *corev1.Pod) {
	for _, owner := range []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs"}, {APIVersion: "apps/v1", Kind: "StatefulSet", Name: "sts"},
		{APIVersion: "v1", Kind: "ReplicationController", Name: "rc"}, {APIVersion: "batch/v1", Kind: "Job", Name: "job"},
	} {
		if w.chance(5) {
			owner.Controller = new(true)
			p.OwnerReferences = []metav1.OwnerReference{owner}
			if selected := map[string]string{"rs": "v0", "sts": "v0", "rc": "v1"}[owner.Name]; selected != "" {
				p.Labels["app"] = selected
			}
		}
	}
}

func (w *placement) addContainers(p *corev1.Pod) {
	for i := range 1 + w.IntN(2) {
		p.Spec.Containers = append(p.Spec.Containers, w.container(fmt.Sprint("c", i)))
	}
	for i := range w.IntN(2) * w.IntN(3) {
		c := w.container(fmt.Sprint("i", i))
		if w.chance(2) {
			c.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
	}
	if w.chance(8) {
		p.Spec.Overhead = corev1.ResourceList{corev1.ResourceCPU: w.quantity("100m"), corev1.ResourceMemory: w.quantity("33Mi")}
	}
	if w.chance(8) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{ // the API fills in what its containers ask for
			corev1.ResourceCPU: w.quantity("1500m", "4"), corev1.ResourceMemory: w.quantity("1Gi", "2Gi"),
		}}
	}
	if w.chance(6) {
		p.Spec.HostNetwork = true
		for i := range p.Spec.Containers {
			for j := range p.Spec.Containers[i].Ports {
				p.Spec.Containers[i].Ports[j].HostPort = p.Spec.Containers[i].Ports[j].ContainerPort
			}
		}
	}
}

func (w *placement) container(name string) corev1.Container {
	c := corev1.Container{Name: name, Image: pick(w.generator, images...)}
	c.Resources.Requests = corev1.ResourceList{}
	for _, r := range []struct {
		name    corev1.ResourceName
		often   int
		amounts []string
	}{
		{corev1.ResourceCPU, 2, []string{"0", "100m", "333m", "1"}}, {corev1.ResourceMemory, 2, []string{"0", "100Mi", "700Mi", "1"}},
		{corev1.ResourceEphemeralStorage, 4, []string{"1Mi", "1Gi"}}, {"example.com/gpu", 4 * w.ease, []string{"1", "2"}},
		{"hugepages-2Mi", 4 * w.ease, []string{"2Mi", "4Mi"}},
	} {
		if amount := w.quantity(r.amounts...); w.chance(r.often) {
			c.Resources.Requests[r.name] = amount
		}
	}
	for range w.IntN(2) * w.IntN(3) {
		c.Ports = append(c.Ports, corev1.ContainerPort{
			ContainerPort: int32(80 + w.IntN(2)), HostPort: int32(w.IntN(2) * (80 + w.IntN(2))),
			Protocol: pick(w.generator, "", corev1.ProtocolTCP, corev1.ProtocolUDP), HostIP: pick(w.generator, "", "0.0.0.0", "10.0.0.1", "10.0.0.2"),
		})
	}
	if w.chance(12) {
		c.RestartPolicyRules = []corev1.ContainerRestartRule{{
			Action:    corev1.ContainerRestartRuleActionRestartAllContainers,
			ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}},
		}}
	}
	return c
}
