package upstream

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

var replicaSets = map[string]func(*play){
	"replica-set-adopts-by-uid":                adoption,
	"replica-set-replicas-change":              replicaSetReplicas,
	"replica-set-beside-going-and-failed":      goingAndFailed,
	"replica-set-takes-its-controller-back":    generalAdoption,
	"replica-set-ready-and-available":          readyAndAvailable,
	"replica-set-deletes-what-is-too-many":     extraPods,
	"replica-set-counts-fully-labeled":         fullyLabeled,
	"replica-set-is-deleted-with-its-pods":     defaultPolicy,
	"replica-set-prefers-cheap-pods-to-go":     deletionCost,
	"replica-set-releases-and-adopts-by-label": relabeledPod,
}

func (p *play) makeSet(replicas int32, keep bool, change func(*appsv1.ReplicaSet)) *appsv1.ReplicaSet {
	p.Helper()
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: selector(), Template: template()}}
	if keep {
		set.Spec.Template.Finalizers = []string{held}
		p.Cleanup(func() { p.letGo(context.Background()) })
	}
	if change != nil {
		change(set)
	}
	set, err := p.client.AppsV1().ReplicaSets(p.namespace).Create(p.Context(), set, metav1.CreateOptions{})
	p.must(err)
	return set
}

func (p *play) changeSet(change func(*appsv1.ReplicaSet)) {
	p.Helper()
	p.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		set, err := p.client.AppsV1().ReplicaSets(p.namespace).Get(p.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(set)
		_, err = p.client.AppsV1().ReplicaSets(p.namespace).Update(p.Context(), set, metav1.UpdateOptions{})
		return err
	}))
}

func (p *play) seeSet(what string, kubelet func(context.Context), wanted func(*appsv1.ReplicaSet) bool) *appsv1.ReplicaSet {
	p.Helper()
	return seen(p, what, func(ctx context.Context) (*appsv1.ReplicaSet, error) {
		if kubelet != nil {
			kubelet(ctx)
		}
		return p.client.AppsV1().ReplicaSets(p.namespace).Get(ctx, "web", metav1.GetOptions{})
	}, func(set *appsv1.ReplicaSet) bool {
		return set.Status.ObservedGeneration == set.Generation && wanted(set)
	})
}

// pod makes a pod with the labels of the templates.
func (p *play) pod(name string, owners ...metav1.OwnerReference) *corev1.Pod {
	p.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels(), OwnerReferences: owners}, Spec: template().Spec}
	pod, err := p.client.CoreV1().Pods(p.namespace).Create(p.Context(), pod, metav1.CreateOptions{})
	p.must(err)
	return pod
}

func (p *play) seePod(name, what string, wanted func(*corev1.Pod) bool) *corev1.Pod {
	p.Helper()
	return seen(p, what, func(ctx context.Context) (*corev1.Pod, error) {
		return p.client.CoreV1().Pods(p.namespace).Get(ctx, name, metav1.GetOptions{})
	}, wanted)
}

func (p *play) changePod(name string, change func(*corev1.Pod)) {
	p.Helper()
	p.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pod, err := p.client.CoreV1().Pods(p.namespace).Get(p.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(pod)
		_, err = p.client.CoreV1().Pods(p.namespace).Update(p.Context(), pod, metav1.UpdateOptions{})
		return err
	}))
}

func owner(kind, name string, of metav1.Object) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: "apps/v1", Kind: kind, Name: name, UID: of.GetUID()}
}

// adoption: whose uid is another's is adopted, whoever has a controller is not, and a plain owner becomes the controller.
func adoption(p *play) {
	set := p.makeSet(2, false, func(set *appsv1.ReplicaSet) { *set.Spec.Replicas = 0 })
	other, err := p.client.AppsV1().ReplicaSets(p.namespace).Create(p.Context(), &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "other"},
		Spec: appsv1.ReplicaSetSpec{Replicas: new(int32), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "other"}}, Spec: template().Spec}}}, metav1.CreateOptions{})
	p.must(err)
	foreign := owner("ReplicaSet", "other", other)
	foreign.Controller = new(true)
	// It selects pods of others, which it may neither adopt nor delete.
	p.pod("of-another", foreign)
	p.seeSet("it has none", nil, func(set *appsv1.ReplicaSet) bool { return set.Status.Replicas == 0 })
	p.changeSet(func(set *appsv1.ReplicaSet) { *set.Spec.Replicas = 2 })
	p.seeSet("two of its own", nil, func(set *appsv1.ReplicaSet) bool { return set.Status.Replicas == 2 })
	mine := 0
	for _, pod := range p.pods(p.Context()) {
		if metav1.IsControlledBy(&pod, set) {
			mine++
		}
	}
	if mine != 2 {
		p.Errorf("%d pods of its own, want 2", mine)
	}
}

func replicaSetReplicas(p *play) {
	p.makeSet(2, false, nil)
	for _, n := range []int32{2, 3, 0, 1} {
		p.changeSet(func(set *appsv1.ReplicaSet) { *set.Spec.Replicas = n })
		p.seeSet(fmt.Sprintf("%d pods", n), p.ready, func(set *appsv1.ReplicaSet) bool { return set.Status.Replicas == n && set.Status.ReadyReplicas == n })
	}
	p.changeSet(func(set *appsv1.ReplicaSet) { set.Spec.MinReadySeconds = 1 })
	p.seeSet("another field is observed too", nil, func(*appsv1.ReplicaSet) bool { return true })
}

// goingAndFailed: a pod that goes and one that failed are replaced, and counted no more.
func goingAndFailed(p *play) {
	p.makeSet(2, true, nil)
	p.seeSet("two", nil, func(set *appsv1.ReplicaSet) bool { return set.Status.Replicas == 2 })
	pods := p.pods(p.Context())
	p.must(p.client.CoreV1().Pods(p.namespace).Delete(p.Context(), pods[0].Name, metav1.DeleteOptions{}))
	p.end(&pods[1], 1)
	p.seePods(4)
	p.seeSet("two, and one goes", nil, func(set *appsv1.ReplicaSet) bool {
		return set.Status.Replicas == 2 && ptr.Deref(set.Status.TerminatingReplicas, 0) == 1
	})
}

// generalAdoption: an owner reference that lost its controller field, and one that is no more, come back.
func generalAdoption(p *play) {
	set := p.makeSet(1, false, nil)
	pod := p.seePods(1)[0]
	for _, owners := range [][]metav1.OwnerReference{{owner("ReplicaSet", "web", set)}, nil} {
		p.changePod(pod.Name, func(pod *corev1.Pod) { pod.OwnerReferences = owners })
		p.seePod(pod.Name, "its controller again", func(pod *corev1.Pod) bool { return metav1.IsControlledBy(pod, set) && len(pod.OwnerReferences) == 1 })
	}
	p.seePods(1)
}

func readyAndAvailable(p *play) {
	p.makeSet(3, false, func(set *appsv1.ReplicaSet) { set.Spec.MinReadySeconds = 3600 })
	p.seeSet("three ready, none for an hour", p.ready, func(set *appsv1.ReplicaSet) bool {
		return set.Status.ReadyReplicas == 3 && set.Status.AvailableReplicas == 0
	})
	p.changeSet(func(set *appsv1.ReplicaSet) { set.Spec.MinReadySeconds = 0 })
	p.seeSet("three available", nil, func(set *appsv1.ReplicaSet) bool { return set.Status.AvailableReplicas == 3 })
}

func extraPods(p *play) {
	for i := range 3 {
		p.pod(fmt.Sprint("orphan-", i))
	}
	set := p.makeSet(2, false, nil)
	for _, pod := range p.seePods(2) {
		p.seePod(pod.Name, "adopted", func(pod *corev1.Pod) bool { return metav1.IsControlledBy(pod, set) })
	}
}

func fullyLabeled(p *play) {
	extra := map[string]string{"app": "web", "extra": "yes"}
	set := p.makeSet(0, false, func(set *appsv1.ReplicaSet) { set.Spec.Template.Labels = extra })
	p.pod("plain", *metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet")))
	p.changeSet(func(set *appsv1.ReplicaSet) { *set.Spec.Replicas = 3 })
	p.seeSet("all are its own, and not all have all labels of its template", nil, func(set *appsv1.ReplicaSet) bool {
		return set.Status.Replicas == 3 && (set.Status.FullyLabeledReplicas == 2 || set.Status.FullyLabeledReplicas == 3)
	})
	for _, pod := range p.pods(p.Context()) {
		p.changePod(pod.Name, func(pod *corev1.Pod) { pod.Labels = labels() })
	}
	last := p.pods(p.Context())[0].Name
	p.changePod(last, func(pod *corev1.Pod) { pod.Labels = extra })
	p.seeSet("one has all labels of its template", nil, func(set *appsv1.ReplicaSet) bool {
		return set.Status.Replicas == 3 && set.Status.FullyLabeledReplicas == 1
	})
}

// defaultPolicy: whoever says nothing deletes the pods too, in the background.
func defaultPolicy(p *play) {
	p.makeSet(2, false, nil)
	p.seePods(2)
	p.must(p.client.AppsV1().ReplicaSets(p.namespace).Delete(p.Context(), "web", metav1.DeleteOptions{}))
	if _, err := p.client.AppsV1().ReplicaSets(p.namespace).Get(p.Context(), "web", metav1.GetOptions{}); !gone(err) {
		p.Errorf("it waits for its pods: %v", err)
	}
	p.seePods(0)
}

func deletionCost(p *play) {
	p.makeSet(2, false, nil)
	p.seeSet("ready", p.ready, func(set *appsv1.ReplicaSet) bool { return set.Status.ReadyReplicas == 2 })
	dear := p.pods(p.Context())[1].Name
	for _, pod := range p.pods(p.Context()) {
		cost := map[bool]string{true: "10", false: "-10"}[pod.Name == dear]
		p.changePod(pod.Name, func(pod *corev1.Pod) { pod.Annotations = map[string]string{corev1.PodDeletionCost: cost} })
	}
	// Costs are read from the loop's cache: what comes behind them on the same watch shows that it has them.
	p.pod("behind")
	p.seePods(2)
	p.changeSet(func(set *appsv1.ReplicaSet) { *set.Spec.Replicas = 1 })
	if left := p.seePods(1)[0].Name; left != dear {
		p.Errorf("%s is left, and %s would be dearer to delete", left, dear)
	}
}

func relabeledPod(p *play) {
	p.makeSet(1, false, nil)
	pod := p.seePods(1)[0]
	p.changePod(pod.Name, func(pod *corev1.Pod) { pod.Labels = map[string]string{"app": "other"} })
	p.seePod(pod.Name, "let go", func(pod *corev1.Pod) bool { return metav1.GetControllerOf(pod) == nil })
	p.seePods(2)
	p.changeSet(func(set *appsv1.ReplicaSet) { *set.Spec.Replicas = 2 })
	p.seePods(3)
	p.changePod(pod.Name, func(pod *corev1.Pod) { pod.Labels = labels() })
	p.seePods(2)
	p.seeSet("two", nil, func(set *appsv1.ReplicaSet) bool { return set.Status.Replicas == 2 })
}
