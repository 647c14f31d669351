package upstream

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

const revision = "deployment.kubernetes.io/revision"

var deployments = map[string]func(*play){
	"deployment-hands-its-annotations-on":      newDeployment,
	"selectors-are-immutable":                  immutableSelectors,
	"deployment-with-a-hash-that-is-taken":     hashCollision,
	"deployments-that-overlap":                 overlapping,
	"deployment-replicas-change":               deploymentReplicas,
	"deployment-available-condition":           availableCondition,
	"replica-set-of-a-deployment-is-adopted":   replicaSetAdoption,
	"replica-set-of-a-deployment-is-relabeled": replicaSetRelabeled,
	"deployment-counts-terminating-pods":       terminatingPods,
	"recreate-waits-for-terminating-pods":      recreateWaits,
	"rolling-update-beside-terminating-pods":   rollingBesideTerminating,
}

// deploy makes a Deployment; pods that are deleted remain until letGo if keep.
func (p *play) deploy(name string, replicas int32, keep bool, change func(*appsv1.Deployment)) *appsv1.Deployment {
	p.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels()},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: selector(), Template: template()}}
	if keep {
		d.Spec.Template.Finalizers = []string{held}
	}
	if change != nil {
		change(d)
	}
	d, err := p.client.AppsV1().Deployments(p.namespace).Create(p.Context(), d, metav1.CreateOptions{})
	p.must(err)
	p.Cleanup(func() { p.letGo(context.Background()) })
	return d
}

func (p *play) changeDeployment(name string, change func(*appsv1.Deployment)) {
	p.Helper()
	p.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		d, err := p.client.AppsV1().Deployments(p.namespace).Get(p.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(d)
		_, err = p.client.AppsV1().Deployments(p.namespace).Update(p.Context(), d, metav1.UpdateOptions{})
		return err
	}))
}

// seeDeployment waits for a Deployment whose status is of its newest version, while kubelet plays.
func (p *play) seeDeployment(name, what string, kubelet func(context.Context), wanted func(*appsv1.Deployment) bool) *appsv1.Deployment {
	p.Helper()
	return seen(p, name+": "+what, func(ctx context.Context) (*appsv1.Deployment, error) {
		if kubelet != nil {
			kubelet(ctx)
		}
		return p.client.AppsV1().Deployments(p.namespace).Get(ctx, name, metav1.GetOptions{})
	}, func(d *appsv1.Deployment) bool { return d.Status.ObservedGeneration == d.Generation && wanted(d) })
}

func complete(d *appsv1.Deployment) bool {
	n := *d.Spec.Replicas
	return d.Status.Replicas == n && d.Status.UpdatedReplicas == n && d.Status.AvailableReplicas == n
}

// sets are the ReplicaSets of an owner, or all without one.
func (p *play) sets(ctx context.Context, owner types.UID) (sets []appsv1.ReplicaSet) {
	p.Helper()
	list, err := p.client.AppsV1().ReplicaSets(p.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	for _, set := range list.Items {
		if ref := metav1.GetControllerOf(&set); owner == "" || ref != nil && ref.UID == owner {
			sets = append(sets, set)
		}
	}
	return sets
}

func (p *play) onlySet(owner types.UID) appsv1.ReplicaSet {
	p.Helper()
	return seen(p, "one ReplicaSet", func(ctx context.Context) ([]appsv1.ReplicaSet, error) { return p.sets(ctx, owner), nil },
		func(sets []appsv1.ReplicaSet) bool { return len(sets) == 1 })[0]
}

func (p *play) patchSet(name, patch string) {
	p.Helper()
	_, err := p.client.AppsV1().ReplicaSets(p.namespace).Patch(p.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	p.must(err)
}

func newDeployment(p *play) {
	d := p.deploy("web", 2, false, func(d *appsv1.Deployment) {
		d.Spec.MinReadySeconds = 1
		d.Annotations = map[string]string{"test": "should-copy-to-replica-set", corev1.LastAppliedConfigAnnotation: "should-not-copy-to-replica-set"}
	})
	p.seeDeployment("web", "complete", p.ready, func(d *appsv1.Deployment) bool { return complete(d) && d.Annotations[revision] == "1" })
	set := p.onlySet(d.UID)
	if _, copied := set.Annotations[corev1.LastAppliedConfigAnnotation]; copied || !has(set.Annotations, map[string]string{"test": "should-copy-to-replica-set"}) {
		p.Errorf("annotations %v", set.Annotations)
	}
	hash := set.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	for _, pod := range p.pods(p.Context()) {
		if hash == "" || pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] != hash || !strings.HasSuffix(set.Name, "-"+hash) {
			p.Errorf("pod %v of %s", pod.Labels, set.Name)
		}
	}
}

func immutableSelectors(p *play) {
	other := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "other"}}
	meta, apps, ctx := metav1.ObjectMeta{Name: "web"}, p.client.AppsV1(), p.Context()
	pods := template()
	d := p.deploy("web", 0, false, nil)
	set, err := apps.ReplicaSets(p.namespace).Create(ctx, &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector(), Template: pods}}, metav1.CreateOptions{})
	p.must(err)
	stateful, err := apps.StatefulSets(p.namespace).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector(), Template: pods}}, metav1.CreateOptions{})
	p.must(err)
	daemons, err := apps.DaemonSets(p.namespace).Create(ctx, &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector(), Template: pods}}, metav1.CreateOptions{})
	p.must(err)
	d.Spec.Selector, set.Spec.Selector, stateful.Spec.Selector, daemons.Spec.Selector = other, other, other, other
	d.Spec.Template.Labels, set.Spec.Template.Labels = other.MatchLabels, other.MatchLabels
	stateful.Spec.Template.Labels, daemons.Spec.Template.Labels = other.MatchLabels, other.MatchLabels
	d.ResourceVersion, set.ResourceVersion, stateful.ResourceVersion, daemons.ResourceVersion = "", "", "", ""
	_, err = apps.Deployments(p.namespace).Update(ctx, d, metav1.UpdateOptions{})
	p.refused("Deployment", err)
	_, err = apps.ReplicaSets(p.namespace).Update(ctx, set, metav1.UpdateOptions{})
	p.refused("ReplicaSet", err)
	_, err = apps.StatefulSets(p.namespace).Update(ctx, stateful, metav1.UpdateOptions{})
	p.refused("StatefulSet", err)
	_, err = apps.DaemonSets(p.namespace).Update(ctx, daemons, metav1.UpdateOptions{})
	p.refused("DaemonSet", err)
}

// hashCollision: the ReplicaSet of the template gets another template, so the Deployment needs a new one, whose name is taken.
func hashCollision(p *play) {
	d := p.deploy("web", 1, false, nil)
	p.seeDeployment("web", "complete", p.ready, complete)
	set := p.onlySet(d.UID)
	p.patchSet(set.Name, `{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":42}}}}`)
	p.changeDeployment("web", func(d *appsv1.Deployment) { d.Annotations["test"] = "sync" })
	p.seeDeployment("web", "a collision, and then complete", p.ready, func(d *appsv1.Deployment) bool {
		return ptr.Deref(d.Status.CollisionCount, 0) == 1 && d.Annotations[revision] == "2" && complete(d)
	})
	if sets := p.sets(p.Context(), d.UID); len(sets) != 2 {
		p.Errorf("%d ReplicaSets, want 2", len(sets))
	}
}

func overlapping(p *play) {
	first, second := p.deploy("first", 1, false, nil), p.deploy("second", 1, false, nil)
	for _, name := range []string{"first", "second"} {
		p.seeDeployment(name, "complete", p.ready, complete)
	}
	before, other := p.onlySet(first.UID), p.onlySet(second.UID)
	p.changeDeployment("first", func(d *appsv1.Deployment) { *d.Spec.Replicas = 3 })
	p.seeDeployment("first", "three pods", p.ready, complete)
	p.changeDeployment("second", func(d *appsv1.Deployment) { *d.Spec.Replicas = 2 })
	p.seeDeployment("second", "two pods", p.ready, complete)
	if after, its := p.onlySet(first.UID), p.onlySet(second.UID); after.UID != before.UID || its.UID != other.UID || *after.Spec.Replicas != 3 || *its.Spec.Replicas != 2 {
		p.Errorf("%s of %d, %s of %d", after.Name, *after.Spec.Replicas, its.Name, *its.Spec.Replicas)
	}
}

func deploymentReplicas(p *play) {
	p.deploy("web", 2, false, nil)
	for _, n := range []int32{2, 4, 0, 1} {
		p.changeDeployment("web", func(d *appsv1.Deployment) { *d.Spec.Replicas = n })
		p.seeDeployment("web", fmt.Sprintf("%d pods", n), p.ready, complete)
	}
	p.changeDeployment("web", func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = ptr.To[int32](4) })
	p.seeDeployment("web", "another field is observed too", p.ready, complete)
}

func availableCondition(p *play) {
	p.deploy("web", 4, false, func(d *appsv1.Deployment) {
		d.Spec.MinReadySeconds = 3600
		d.Spec.ProgressDeadlineSeconds = ptr.To[int32](7200)
	})
	p.seeDeployment("web", "not available before there are pods", nil, func(d *appsv1.Deployment) bool {
		return d.Status.Replicas == 4 && condition(d, appsv1.DeploymentAvailable) == "False MinimumReplicasUnavailable"
	})
	p.seeDeployment("web", "ready, but not for an hour", p.ready, func(d *appsv1.Deployment) bool {
		return d.Status.ReadyReplicas == 4 && d.Status.UnavailableReplicas == 4 && condition(d, appsv1.DeploymentAvailable) == "False MinimumReplicasUnavailable"
	})
	p.changeDeployment("web", func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 1 })
	p.seeDeployment("web", "available after a second", p.ready, func(d *appsv1.Deployment) bool {
		return complete(d) && condition(d, appsv1.DeploymentAvailable) == "True MinimumReplicasAvailable"
	})
}

// replicaSetAdoption: what is taken from a ReplicaSet's owner reference comes back.
func replicaSetAdoption(p *play) {
	d := p.deploy("web", 1, false, nil)
	p.seeDeployment("web", "complete", p.ready, complete)
	set := p.onlySet(d.UID)
	without := set.OwnerReferences[0]
	for _, patch := range []string{
		fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q}]}}`, without.APIVersion, without.Kind, without.Name, without.UID),
		`{"metadata":{"ownerReferences":null}}`,
	} {
		p.patchSet(set.Name, patch)
		if after := p.onlySet(d.UID); after.UID != set.UID || len(after.OwnerReferences) != 1 {
			p.Errorf("%s of %v", after.Name, after.OwnerReferences)
		}
	}
}

func replicaSetRelabeled(p *play) {
	d := p.deploy("web", 1, false, nil)
	p.seeDeployment("web", "complete", p.ready, complete)
	set := p.onlySet(d.UID)
	p.patchSet(set.Name, `{"metadata":{"labels":{"app":"other"}}}`)
	p.see("it is let go, and another takes its place", func(ctx context.Context) (string, bool) {
		all, mine := p.sets(ctx, ""), p.sets(ctx, d.UID)
		return fmt.Sprint(len(all), len(mine)), len(all) == 2 && len(mine) == 1 && mine[0].UID != set.UID
	})
	p.patchSet(set.Name, `{"metadata":{"labels":{"app":"web"}}}`)
	p.see("it is adopted", func(ctx context.Context) (string, bool) {
		n := len(p.sets(ctx, d.UID))
		return fmt.Sprint(n), n == 2
	})
	p.seeDeployment("web", "complete", p.ready, complete)
}

func terminating(d *appsv1.Deployment) int32 { return ptr.Deref(d.Status.TerminatingReplicas, -1) }

func terminatingPods(p *play) {
	p.deploy("web", 6, true, nil)
	p.seeDeployment("web", "complete", p.ready, complete)
	for _, pod := range p.pods(p.Context())[:2] {
		p.must(p.client.CoreV1().Pods(p.namespace).Delete(p.Context(), pod.Name, metav1.DeleteOptions{}))
	}
	p.seeDeployment("web", "two go, two come", nil, func(d *appsv1.Deployment) bool {
		return terminating(d) == 2 && d.Status.Replicas == 6 && d.Status.ReadyReplicas == 4
	})
	p.changeDeployment("web", func(d *appsv1.Deployment) { *d.Spec.Replicas = 3 })
	p.seeDeployment("web", "five go", p.ready, func(d *appsv1.Deployment) bool { return terminating(d) == 5 && complete(d) })
	p.seeDeployment("web", "none goes", p.letGo, func(d *appsv1.Deployment) bool { return terminating(d) == 0 && complete(d) })
}

// recreateWaits: under Recreate new pods come when the old ones have ended, and pods that end for other reasons are not waited for.
func recreateWaits(p *play) {
	p.deploy("web", 6, true, func(d *appsv1.Deployment) { d.Spec.Strategy.Type = appsv1.RecreateDeploymentStrategyType })
	p.seeDeployment("web", "complete", p.ready, complete)
	p.changeDeployment("web", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "v2" })
	p.seeDeployment("web", "six go, none is there", nil, func(d *appsv1.Deployment) bool { return terminating(d) == 6 && d.Status.Replicas == 0 })
	if sets := p.sets(p.Context(), ""); len(sets) != 1 {
		p.Errorf("%d ReplicaSets while old pods end", len(sets))
	}
	p.seeDeployment("web", "six new ones", p.letGo, func(d *appsv1.Deployment) bool { return terminating(d) == 0 && d.Status.UpdatedReplicas == 6 })
	victim := p.pods(p.Context())[0].Name
	p.must(p.client.CoreV1().Pods(p.namespace).Delete(p.Context(), victim, metav1.DeleteOptions{}))
	p.seeDeployment("web", "one goes, another comes", nil, func(d *appsv1.Deployment) bool { return terminating(d) == 1 && d.Status.UpdatedReplicas == 6 })
	p.changeDeployment("web", func(d *appsv1.Deployment) { *d.Spec.Replicas = 7 })
	p.seeDeployment("web", "seven", nil, func(d *appsv1.Deployment) bool { return terminating(d) == 1 && d.Status.Replicas == 7 })
	p.changeDeployment("web", func(d *appsv1.Deployment) { *d.Spec.Replicas = 5 })
	p.seeDeployment("web", "five, three go", nil, func(d *appsv1.Deployment) bool { return terminating(d) == 3 && d.Status.Replicas == 5 })
	p.seeDeployment("web", "complete", p.ready, complete)
	p.seeDeployment("web", "none goes", p.letGo, func(d *appsv1.Deployment) bool { return terminating(d) == 0 && complete(d) })
}

// rollingBesideTerminating: neither a rollout nor proportional scaling counts pods that end.
func rollingBesideTerminating(p *play) {
	surge, unavailable := intstr.FromInt32(3), intstr.FromInt32(2)
	d := p.deploy("web", 10, true, func(d *appsv1.Deployment) {
		d.Spec.Strategy = appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable}}
	})
	p.seeDeployment("web", "complete", p.ready, complete)
	for _, pod := range p.pods(p.Context())[:3] {
		p.must(p.client.CoreV1().Pods(p.namespace).Delete(p.Context(), pod.Name, metav1.DeleteOptions{}))
	}
	p.seeDeployment("web", "ten, three go", p.ready, func(d *appsv1.Deployment) bool { return complete(d) && terminating(d) == 3 })
	p.changeDeployment("web", func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "v2" })
	p.seeDeployment("web", "eight old ones and five new ones, whoever goes", nil, func(d *appsv1.Deployment) bool {
		return d.Status.Replicas == 13 && d.Status.UpdatedReplicas == 5 && d.Status.AvailableReplicas == 8 && terminating(d) == 5
	})
	p.changeDeployment("web", func(d *appsv1.Deployment) { *d.Spec.Replicas = 20 })
	p.see("the new size is shared out in proportion", func(ctx context.Context) (string, bool) {
		var sizes []string
		for _, set := range p.sets(ctx, d.UID) {
			sizes = append(sizes, fmt.Sprint(set.Spec.Template.Spec.Containers[0].Image, *set.Spec.Replicas))
		}
		saw := strings.Join(sizes, " ")
		return saw, strings.Contains(saw, "v114") && strings.Contains(saw, "v29")
	})
	p.seeDeployment("web", "complete", func(ctx context.Context) { p.ready(ctx); p.letGo(ctx) }, func(d *appsv1.Deployment) bool { return complete(d) && terminating(d) == 0 })
}
