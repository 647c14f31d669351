package daemonset

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
)

// fit judges which nodes pods of a DaemonSet fit. It is made once for all nodes.
type fit struct {
	nodeName    string
	tolerations []corev1.Toleration
	affinity    nodeaffinity.RequiredNodeAffinity
}

func fitOf(ds *appsv1.DaemonSet) fit {
	spec := &ds.Spec.Template.Spec
	return fit{spec.NodeName, tolerations(spec), nodeaffinity.NewRequiredNodeAffinity(spec.NodeSelector, spec.Affinity)}
}

// verdict is what a node is to a DaemonSet.
type verdict struct {
	run  bool // it should have a pod
	keep bool // a pod that is there may stay
}

// of judges a node. Resources and other pods do not matter: then the pod waits for
// the scheduler.
func (f fit) of(node *corev1.Node) verdict {
	if f.nodeName != "" && f.nodeName != node.Name {
		return verdict{}
	}
	// Terms that cannot be parsed match nothing, as in the scheduler.
	if ok, _ := f.affinity.Match(node); !ok {
		return verdict{}
	}
	evicted := f.repelled(node, corev1.TaintEffectNoExecute)
	return verdict{run: !evicted && !f.repelled(node, corev1.TaintEffectNoSchedule), keep: !evicted}
}

// repelled tells whether the node has a taint of an effect that is not tolerated.
func (f fit) repelled(node *corev1.Node, effect corev1.TaintEffect) bool {
	// The zero logger drops what the helper says about tolerations it cannot read.
	_, repelled := schedulinghelpers.FindMatchingUntoleratedTaint(klog.Logger{}, node.Spec.Taints, f.tolerations,
		func(t *corev1.Taint) bool { return t.Effect == effect }, true)
	return repelled
}

// tolerations are the template's and those that every daemon pod has: it stays
// where the node has a problem, because it may be what the node needs.
func tolerations(spec *corev1.PodSpec) []corev1.Toleration {
	list := slices.Clone(spec.Tolerations)
	add := func(effect corev1.TaintEffect, keys ...string) {
		for _, key := range keys {
			list = withToleration(list, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: effect})
		}
	}
	add(corev1.TaintEffectNoExecute, corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable)
	add(corev1.TaintEffectNoSchedule, corev1.TaintNodeDiskPressure, corev1.TaintNodeMemoryPressure,
		corev1.TaintNodePIDPressure, corev1.TaintNodeUnschedulable)
	if spec.HostNetwork {
		add(corev1.TaintEffectNoSchedule, corev1.TaintNodeNetworkUnavailable)
	}
	return list
}

// withToleration adds a toleration, or puts it in the place of those that differ
// from it in their seconds only.
func withToleration(list []corev1.Toleration, t corev1.Toleration) []corev1.Toleration {
	found := false
	for i := range list {
		if t.MatchToleration(&list[i]) {
			list[i], found = t, true
		}
	}
	if found {
		return list
	}
	return append(list, t)
}
