package podkey

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugins"
)

// Key names everything of a pod that any plugin looks at; pods with equal keys are interchangeable as long as their claims
// need the same (plugin.Needs).
type Key struct {
	Shape string // what it asks of a node
	Peers string // who it belongs to, and what it asks of other pods
	// Priority decides on whether the room is kept from it that others have been promised.
	Priority int32
}

// With adds what the pod's claims need.
func (k Key) With(pod *plugin.Pod) Key {
	if needs := pod.Needs.Key(); needs != "" {
		k.Shape += pod.Namespace + "\n" + needs
	}
	return k
}

// shapeKey is what plugins look at that judge a node by itself. Of the volumes only disks and images are in it: the token volume
// has a random name in every pod. A list or map that is empty is as good as none.
type shapeKey struct {
	NodeName     string                          `json:",omitempty"`
	NodeSelector map[string]string               `json:",omitempty"`
	NodeAffinity *corev1.NodeAffinity            `json:",omitempty"`
	Tolerations  []corev1.Toleration             `json:",omitempty"`
	Overhead     corev1.ResourceList             `json:",omitempty"`
	Resources    *corev1.ResourceRequirements    `json:",omitempty"`
	Init         []containerKey                  `json:",omitempty"`
	Containers   []containerKey                  `json:",omitempty"`
	Devices      []corev1.PodResourceClaimStatus `json:",omitempty"`
	Disks        []*corev1.Volume                `json:",omitempty"`
	Images       []string                        `json:",omitempty"`
	Features     string                          `json:",omitempty"`
}

// peersKey is what else plugins look at that ask the views.
type peersKey struct {
	Namespace    string                            `json:",omitempty"`
	Labels       map[string]string                 `json:",omitempty"`
	Owner        types.UID                         `json:",omitempty"`
	Affinity     *corev1.PodAffinity               `json:",omitempty"`
	AntiAffinity *corev1.PodAntiAffinity           `json:",omitempty"`
	Spread       []corev1.TopologySpreadConstraint `json:",omitempty"`
}

type containerKey struct {
	Image     string                         `json:",omitempty"`
	Requests  corev1.ResourceList            `json:",omitempty"`
	Ports     []corev1.ContainerPort         `json:",omitempty"`
	Restarted *corev1.ContainerRestartPolicy `json:",omitempty"`
}

// Of gives the key of a pod, without the needs of its claims.
func Of(pod *corev1.Pod) Key {
	shape := shapeKey{
		NodeName: pod.Spec.NodeName, NodeSelector: pod.Spec.NodeSelector, Tolerations: pod.Spec.Tolerations,
		Overhead: pod.Spec.Overhead, Resources: pod.Spec.Resources,
		Init: containerKeys(pod.Spec.InitContainers), Containers: containerKeys(pod.Spec.Containers),
		Devices: pod.Status.ResourceClaimStatuses, Disks: plugins.DisksOf(pod), Images: plugins.ImageVolumes(pod),
		Features: plugins.FeaturesOf(pod).String(),
	}
	peers := peersKey{Namespace: pod.Namespace, Labels: pod.Labels, Spread: pod.Spec.TopologySpreadConstraints}
	if affinity := pod.Spec.Affinity; affinity != nil {
		shape.NodeAffinity, peers.Affinity, peers.AntiAffinity = affinity.NodeAffinity, affinity.PodAffinity, affinity.PodAntiAffinity
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		peers.Owner = owner.UID
	}
	return Key{Shape: keyText(pod, shape), Peers: keyText(pod, peers), Priority: (&plugin.Pod{Pod: pod}).Priority()}
}

func keyText(pod *corev1.Pod, key any) string {
	text, err := json.Marshal(key)
	if err != nil {
		return "pod " + string(pod.UID) // cannot happen for API types; such a pod is a class of its own
	}
	return string(text)
}

func containerKeys(containers []corev1.Container) []containerKey {
	keys := make([]containerKey, len(containers))
	for i := range containers {
		c := &containers[i]
		keys[i] = containerKey{c.Image, c.Resources.Requests, c.Ports, c.RestartPolicy}
	}
	return keys
}
