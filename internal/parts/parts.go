package parts

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The parts of a server. Each is the value of the label component, the name of the only container, and the beginning of the pod's name.
const (
	APIServer         = "kube-apiserver"
	ControllerManager = "kube-controller-manager"
	Scheduler         = "kube-scheduler"
	// Store stands in etcd's place, under its own name: whoever looks for component=etcd wants etcd's API.
	Store = "setpoint-store"
)

const (
	// ComponentLabel and TierLabel are kubeadm's; the store's component is "store".
	ComponentLabel = "component"
	TierLabel      = "tier"
	// Tier is the value of TierLabel.
	Tier = "control-plane"
	// SourceAnnotation says where the description of a pod comes from; a kubelet writes file, http or api.
	SourceAnnotation = "kubernetes.io/config.source"
	// Source is its value here.
	Source = "setpoint"
	// NodeDomain ends the names of the nodes that these pods name. No Node is called so.
	NodeDomain = ".servers.setpoint.local"
	// Namespace is where the pods are.
	Namespace = metav1.NamespaceSystem
)

// All are the parts of every server.
func All() []string { return []string{APIServer, ControllerManager, Scheduler, Store} }

// Label is the value of ComponentLabel of a part's pods.
func Label(part string) string {
	if part == Store {
		return "store"
	}
	return part
}

// PodName is the name of the pod of a server's part.
func PodName(part, server string) string { return part + "-" + server }

// NodeName is what such a pod has for a node.
func NodeName(server string) string { return server + NodeDomain }

// Of tells of which server and which part a pod is; ok is false for every other pod.
func Of(pod *corev1.Pod) (server, part string, ok bool) {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	if pod.Namespace != Namespace || !mirror || pod.Annotations[SourceAnnotation] != Source {
		return "", "", false
	}
	server, ok = strings.CutSuffix(pod.Spec.NodeName, NodeDomain)
	if !ok {
		return "", "", false
	}
	part, ok = strings.CutSuffix(pod.Name, "-"+server)
	for _, known := range All() {
		if ok && part == known {
			return server, part, true
		}
	}
	return "", "", false
}
