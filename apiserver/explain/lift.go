package explain

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lift is the command that lifts a refusal; empty if no one command does.
func (e *explainer) lift(pod *corev1.Pod, node *JudgedNode, refusal Refusal) string {
	switch refusal.Plugin {
	case "NodeUnschedulable":
		return kubectl("", "uncordon", node.Name)
	case "TaintToleration":
		return untaint(node.Object, refusal)
	case "NodeResourcesFit":
		return e.requestLess(pod, node, refusal)
	case "NodeAffinity":
		return labelNode(pod, node.Object)
	}
	return ""
}

// untaint removes the taint that the plugin names, unless a loop would set it again.
func untaint(node *corev1.Node, refusal Refusal) string {
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		named := strings.HasSuffix(strings.Join(refusal.Remedies, ""), " "+taint.ToString())
		if named && !strings.HasPrefix(taint.Key, "node.kubernetes.io/") {
			return kubectl("", "taint", "nodes", node.Name, taint.ToString()+"-")
		}
	}
	return ""
}

// requestLess has the workload of the pod request what is free on the node.
func (e *explainer) requestLess(pod *corev1.Pod, node *JudgedNode, refusal Refusal) string {
	owner := e.root(pod)
	if owner == (Object{}) || len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) > 0 || len(pod.Spec.Overhead) > 0 {
		return ""
	}
	var requests []string
	for _, reason := range refusal.Reasons {
		const mebi = 1 << 20
		switch {
		case reason == "Insufficient cpu" && node.FreeMilliCPU > 0:
			requests = append(requests, fmt.Sprintf("cpu=%dm", node.FreeMilliCPU))
		case reason == "Insufficient memory" && node.FreeMemory >= mebi:
			requests = append(requests, fmt.Sprintf("memory=%dMi", node.FreeMemory/mebi))
		default:
			return ""
		}
	}
	return kubectl(owner.Namespace, "set", "resources", owner.qualified(), owner.Name, "--requests="+strings.Join(requests, ","))
}

// root is the workload whose template makes the pod; the zero Object if there is none whose template can change.
func (e *explainer) root(pod *corev1.Pod) Object {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return Object{}
	}
	switch owner.Kind {
	case "StatefulSet", "DaemonSet":
		return workloads[owner.Kind].Named(pod.Namespace, owner.Name)
	case "ReplicaSet":
		above := metav1.GetControllerOfNoCopy(orNothing(e.Get(ReplicaSets.Named(pod.Namespace, owner.Name))))
		if above != nil && above.Kind == "Deployment" {
			return Deployments.Named(pod.Namespace, above.Name)
		}
	}
	return Object{}
}

func orNothing(o metav1.Object) metav1.Object {
	if o == nil {
		return &metav1.ObjectMeta{}
	}
	return o
}

// labelNode gives the node the labels of the pod's selector. What affinity terms ask for, no command can guess.
func labelNode(pod *corev1.Pod, node *corev1.Node) string {
	if a := pod.Spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		return ""
	}
	args := []string{"label", "nodes", node.Name}
	for _, key := range sortedKeys(pod.Spec.NodeSelector) {
		value := pod.Spec.NodeSelector[key]
		if have, set := node.Labels[key]; !set || have != value {
			args = append(args, key+"="+value)
		}
	}
	return kubectl("", append(args, "--overwrite")...)
}
