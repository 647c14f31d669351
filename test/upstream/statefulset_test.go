package upstream

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

var statefulSets = map[string]func(*play){
	"stateful-set-with-a-volume-template": volumeTemplate,
	"stateful-set-replicas-change":        statefulReplicas,
	"stateful-set-start-ordinal":          startOrdinal,
	"stateful-set-pods-are-refused":       refusedPods,
	"stateful-set-deletes-its-claims":     claimsGo,
	"stateful-set-pod-above-a-partition":  partition,
	"stateful-set-available":              statefulAvailable,
}

func (p *play) makeStateful(replicas int32, change func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	p.Helper()
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.StatefulSetSpec{
		ServiceName: "svc", Replicas: &replicas, Selector: selector(), Template: template()}}
	if change != nil {
		change(set)
	}
	set, err := p.client.AppsV1().StatefulSets(p.namespace).Create(p.Context(), set, metav1.CreateOptions{})
	p.must(err)
	return set
}

func (p *play) changeStateful(change func(*appsv1.StatefulSet)) {
	p.Helper()
	p.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		set, err := p.client.AppsV1().StatefulSets(p.namespace).Get(p.Context(), "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(set)
		_, err = p.client.AppsV1().StatefulSets(p.namespace).Update(p.Context(), set, metav1.UpdateOptions{})
		return err
	}))
}

func (p *play) seeStateful(what string, kubelet func(context.Context), wanted func(*appsv1.StatefulSet) bool) *appsv1.StatefulSet {
	p.Helper()
	return seen(p, what, func(ctx context.Context) (*appsv1.StatefulSet, error) {
		if kubelet != nil {
			kubelet(ctx)
		}
		return p.client.AppsV1().StatefulSets(p.namespace).Get(ctx, "web", metav1.GetOptions{})
	}, func(set *appsv1.StatefulSet) bool {
		return set.Status.ObservedGeneration == set.Generation && wanted(set)
	})
}

func allReady(set *appsv1.StatefulSet) bool {
	n := *set.Spec.Replicas
	return set.Status.Replicas == n && set.Status.ReadyReplicas == n && set.Status.AvailableReplicas == n && set.Status.UpdatedReplicas == n
}

func claim() corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
}

// volumeTemplate: a set with claims is written back as it was read, and the claims as they were first written.
func volumeTemplate(p *play) {
	p.makeStateful(1, func(set *appsv1.StatefulSet) { set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim()} })
	p.changeStateful(func(*appsv1.StatefulSet) {})
	p.changeStateful(func(set *appsv1.StatefulSet) { set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim()} })
	set, err := p.client.AppsV1().StatefulSets(p.namespace).Get(p.Context(), "web", metav1.GetOptions{})
	p.must(err)
	set.Spec.VolumeClaimTemplates[0].Name = "other"
	set.ResourceVersion = ""
	_, err = p.client.AppsV1().StatefulSets(p.namespace).Update(p.Context(), set, metav1.UpdateOptions{})
	p.refused("another claim", err)
}

func statefulReplicas(p *play) {
	p.makeStateful(2, nil)
	for _, n := range []int32{2, 3, 0, 1} {
		p.changeStateful(func(set *appsv1.StatefulSet) { *set.Spec.Replicas = n })
		p.seeStateful(fmt.Sprintf("%d pods", n), p.ready, allReady)
	}
	p.changeStateful(func(set *appsv1.StatefulSet) { set.Spec.Template.Labels["extra"] = "yes" })
	p.seeStateful("another field is observed too", p.ready, allReady)
}

// startOrdinal moves the first ordinal: pods below it go, and it has as many as before.
func startOrdinal(p *play) {
	p.makeStateful(3, func(set *appsv1.StatefulSet) { set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: 2} })
	names := func(wanted string) {
		p.Helper()
		p.see(wanted, func(ctx context.Context) (string, bool) {
			p.ready(ctx)
			saw := ""
			for _, pod := range p.pods(ctx) {
				saw += pod.Name + " "
			}
			return saw, saw == wanted
		})
	}
	names("web-2 web-3 web-4 ")
	p.changeStateful(func(set *appsv1.StatefulSet) { set.Spec.Ordinals.Start = 0 })
	names("web-0 web-1 web-2 ")
	p.changeStateful(func(set *appsv1.StatefulSet) { set.Spec.Ordinals.Start = 1 })
	names("web-1 web-2 web-3 ")
	p.changeStateful(func(set *appsv1.StatefulSet) { set.Spec.Ordinals = nil })
	names("web-0 web-1 web-2 ")
}

// refusedPods: the status counts those that came, though others are refused.
func refusedPods(p *play) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "two"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("2")}}}
	_, err := p.client.CoreV1().ResourceQuotas(p.namespace).Create(p.Context(), quota, metav1.CreateOptions{})
	p.must(err)
	p.makeStateful(4, func(set *appsv1.StatefulSet) { set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement })
	p.seeStateful("two of four", nil, func(set *appsv1.StatefulSet) bool { return set.Status.Replicas == 2 })
}

func (p *play) claims(ctx context.Context) (claims []corev1.PersistentVolumeClaim) {
	list, err := p.client.CoreV1().PersistentVolumeClaims(p.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	return list.Items
}

// claimsGo with their pods when it shrinks, and with the set.
func claimsGo(p *play) {
	p.makeStateful(2, func(set *appsv1.StatefulSet) {
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{claim()}
		set.Spec.PersistentVolumeClaimRetentionPolicy = &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
			WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType, WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType}
	})
	p.seeStateful("two", p.ready, allReady)
	p.changeStateful(func(set *appsv1.StatefulSet) { *set.Spec.Replicas = 1 })
	p.see("one claim", func(ctx context.Context) (string, bool) { n := len(p.claims(ctx)); return fmt.Sprint(n), n == 1 })
	p.must(p.client.AppsV1().StatefulSets(p.namespace).Delete(p.Context(), "web", metav1.DeleteOptions{}))
	p.see("no claim", func(ctx context.Context) (string, bool) { n := len(p.claims(ctx)); return fmt.Sprint(n), n == 0 })
}

// partition: pods above it come back of the new revision, those below of the old one, whatever is ready meanwhile.
func partition(p *play) {
	p.makeStateful(3, func(set *appsv1.StatefulSet) {
		set.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{Partition: ptr.To[int32](1)}
	})
	p.seeStateful("three", p.ready, allReady)
	p.changeStateful(func(set *appsv1.StatefulSet) { set.Spec.Template.Spec.Containers[0].Image = "v2" })
	p.seeStateful("two are new", p.ready, func(set *appsv1.StatefulSet) bool {
		return set.Status.UpdatedReplicas == 2 && set.Status.ReadyReplicas == 3
	})
	for _, pod := range p.pods(p.Context()) {
		p.must(p.client.CoreV1().Pods(p.namespace).Delete(p.Context(), pod.Name, metav1.DeleteOptions{}))
	}
	p.seeStateful("again", p.ready, func(set *appsv1.StatefulSet) bool {
		return set.Status.UpdatedReplicas == 2 && set.Status.ReadyReplicas == 3
	})
	for _, pod := range p.pods(p.Context()) {
		if image := pod.Spec.Containers[0].Image; (image == "v1") != (pod.Name == "web-0") {
			p.Errorf("%s has %s", pod.Name, image)
		}
	}
	p.changeStateful(func(set *appsv1.StatefulSet) { set.Spec.UpdateStrategy.RollingUpdate.Partition = new(int32) })
	p.seeStateful("all are new", p.ready, func(set *appsv1.StatefulSet) bool {
		return allReady(set) && set.Status.CurrentRevision == set.Status.UpdateRevision
	})
}

func statefulAvailable(p *play) {
	p.makeStateful(2, func(set *appsv1.StatefulSet) {
		set.Spec.MinReadySeconds, set.Spec.PodManagementPolicy = 3600, appsv1.ParallelPodManagement
	})
	p.seeStateful("two ready, none for an hour", p.ready, func(set *appsv1.StatefulSet) bool {
		return set.Status.ReadyReplicas == 2 && set.Status.AvailableReplicas == 0
	})
	p.changeStateful(func(set *appsv1.StatefulSet) { set.Spec.MinReadySeconds = 0 })
	p.seeStateful("two available", nil, func(set *appsv1.StatefulSet) bool { return set.Status.AvailableReplicas == 2 })
}
