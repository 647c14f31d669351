package admission

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/inplacepodresize"
)

func nodeWith(name, system string, features ...string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelOSStable: system}},
		Status: corev1.NodeStatus{
			DeclaredFeatures: features,
			Allocatable:      corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi")},
		},
	}
}

func asking(cpu, memory string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory),
	}}
}

// A resize that can never be carried out is refused, with a cause for programs; one that may have to wait is not.
func TestResizesThatTheNodeCanNeverCarryOut(t *testing.T) {
	w := newWorld(t, allowAll, withNamespace(nodeWith("linux", "linux"), nodeWith("windows", "windows"), &corev1.Node{ObjectMeta: named("unknown")})...)
	for name, c := range map[string]struct {
		node, subresource string
		now               corev1.ResourceRequirements
		same              bool
		words             string
		cause             metav1.CauseType
	}{
		"fits":               {node: "linux", now: asking("4", "8Gi")},
		"CPU":                {node: "linux", now: asking("5", "1Gi"), words: "node didn't have enough allocatable resources: cpu, requested: 5000, allocatable: 4000", cause: causeNodeCapacity},
		"both":               {node: "linux", now: asking("5", "9Gi"), words: "cpu, requested: 5000, allocatable: 4000; memory, requested: 9663676416, allocatable: 8589934592", cause: causeNodeCapacity},
		"another system":     {node: "windows", now: asking("2", "1Gi"), words: `pod resize is only supported on linux nodes, node "windows" is "windows"`, cause: causeUnsupportedPlatform},
		"no such node":       {node: "gone", now: asking("2", "1Gi"), words: `node "gone" not found`},
		"system not said":    {node: "unknown", now: asking("0", "0")},
		"nothing changes":    {node: "linux", now: asking("5", "1Gi"), same: true},
		"not on a node":      {node: "", now: asking("5", "1Gi")},
		"a change of status": {node: "linux", subresource: "status", now: asking("5", "1Gi")},
	} {
		t.Run(name, func(t *testing.T) {
			pod := func(r corev1.ResourceRequirements, generation int64) *corev1.Pod {
				return podNamed("p", func(p *corev1.Pod) {
					p.Generation, p.Spec.NodeName, p.Spec.Containers[0].Resources = generation, c.node, r
				})
			}
			generation := int64(2)
			if c.same {
				generation = 1
			}
			r := request{old: pod(asking("1", "1Gi"), 1), obj: pod(c.now, generation), subresource: "resize"}
			if c.subresource != "" {
				r.subresource = c.subresource
			}
			err := w.admit(t, r)
			check(t, err, c.words)
			var status *apierrors.StatusError
			if c.cause != "" && (!errors.As(err, &status) || status.ErrStatus.Code != 403 || !apierrors.HasStatusCause(err, c.cause)) {
				t.Errorf("%#v", err)
			}
		})
	}
}

// A change that a node does not declare to carry out is refused.
func TestChangesThatTheNodeDoesNotDeclare(t *testing.T) {
	w := newWorld(t, allowAll, withNamespace(nodeWith("old", "linux"),
		nodeWith("new", "linux", inplacepodresize.IPPRPodLevelResourcesFeatureGate, inplacepodresize.IPPRInitContainersFeatureGate))...)
	whole := func(p *corev1.Pod) { p.Spec.Resources = new(asking("2", "2Gi")) }
	initial := func(p *corev1.Pod) { p.Spec.InitContainers[0].Resources = asking("1", "1Gi") }
	plain := func(p *corev1.Pod) { p.Spec.Containers[0].Resources = asking("1", "1Gi") }
	for name, c := range map[string]struct {
		node   string
		change func(*corev1.Pod)
		words  string
	}{
		"a container":                   {"old", plain, ""},
		"the pod":                       {"old", whole, `pod update requires features InPlacePodLevelResourcesVerticalScaling which are not available on node "old"`},
		"an init container":             {"old", initial, `pod update requires features InPlacePodVerticalScalingInitContainers which are not available on node "old"`},
		"the pod, declared":             {"new", whole, ""},
		"an init container, declared":   {"new", initial, ""},
		"the pod, on a node that went":  {"gone", whole, `node "gone" not found`},
		"the pod, before it has a node": {"", whole, ""},
	} {
		t.Run(name, func(t *testing.T) {
			old := podNamed("p", func(p *corev1.Pod) {
				p.Generation, p.Spec.NodeName, p.Spec.InitContainers = 1, c.node, []corev1.Container{{Name: "i", Image: "i"}}
			})
			pod := old.DeepCopy()
			pod.Generation = 2
			c.change(pod)
			check(t, w.admit(t, request{old: old, obj: pod, subresource: "resize"}), c.words)
		})
	}
}
