package scenes

import (
	"context"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// sameSelector has two ReplicaSets that select the same pods, and a pod without an owner: each has as many as it wants of
// its own, and leaves those of the other alone.
func sameSelector(s *scene) {
	s.barePod("stray")
	wanted := map[string]int32{"a": 3, "b": 2}
	sets := s.client.AppsV1().ReplicaSets(s.namespace)
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		labels, replicas := map[string]string{"app": "shop"}, wanted[name]
		_, err := sets.Create(s.Context(), &appsv1.ReplicaSet{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: appsv1.ReplicaSetSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "shop:v1"}}}}},
		}, metav1.CreateOptions{})
		s.must(err)
	}
	s.see("three pods of one, two of the other", func(ctx context.Context) (string, bool) {
		list, err := sets.List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) != 2 {
			return fmt.Sprint(err), false
		}
		ready := map[string]int32{list.Items[0].Name: list.Items[0].Status.ReadyReplicas, list.Items[1].Name: list.Items[1].Status.ReadyReplicas}
		return fmt.Sprint(ready), maps.Equal(ready, wanted)
	})
	owned := map[string]int32{}
	for _, pod := range s.pods("shop") {
		if owner := metav1.GetControllerOf(&pod); owner != nil {
			owned[owner.Name]++
		} else {
			s.Errorf("%s was not adopted", pod.Name)
		}
	}
	if !maps.Equal(owned, wanted) {
		s.Errorf("%v, want %v", owned, wanted)
	}
}

// ownersInACircle deletes one of two objects that own one another, and waits for both to go.
func ownersInACircle(s *scene) {
	maps, block := s.client.CoreV1().ConfigMaps(s.namespace), true
	objects := make([]*corev1.ConfigMap, 2)
	for i := range objects {
		object, err := maps.Create(s.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("c", i)}}, metav1.CreateOptions{})
		s.must(err)
		objects[i] = object
	}
	for i, object := range objects {
		other := objects[1-i]
		object.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "v1", Kind: "ConfigMap", Name: other.Name, UID: other.UID, BlockOwnerDeletion: &block,
		}}
		_, err := maps.Update(s.Context(), object, metav1.UpdateOptions{})
		s.must(err)
	}
	foreground := metav1.DeletePropagationForeground
	s.must(maps.Delete(s.Context(), "c0", metav1.DeleteOptions{PropagationPolicy: &foreground}))
	s.see("both are gone", func(ctx context.Context) (string, bool) {
		list, err := maps.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name!=kube-root-ca.crt"})
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%d are left", len(list.Items)), len(list.Items) == 0
	})
}

// strangeIndex puts a pod into an indexed Job whose index is none of its own: the Job is done with those that are.
func strangeIndex(s *scene) {
	indexed, completions, suspended := batchv1.IndexedCompletion, int32(3), true
	template := corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
		Containers: []corev1.Container{{Name: "c", Image: "busybox", Command: []string{"sleep", "0"}}}}}
	jobs := s.client.BatchV1().Jobs(s.namespace)
	work, err := jobs.Create(s.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "work"},
		Spec:       batchv1.JobSpec{CompletionMode: &indexed, Completions: &completions, Parallelism: &completions, Suspend: &suspended, Template: template},
	}, metav1.CreateOptions{})
	s.must(err)
	stranger := &corev1.Pod{ObjectMeta: *work.Spec.Template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	stranger.Name, stranger.Annotations = "work-99", map[string]string{batchv1.JobCompletionIndexAnnotation: "99"}
	stranger.Finalizers = []string{batchv1.JobTrackingFinalizer}
	stranger.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(work, batchv1.SchemeGroupVersion.WithKind("Job"))}
	_, err = s.client.CoreV1().Pods(s.namespace).Create(s.Context(), stranger, metav1.CreateOptions{})
	s.must(err)
	_, err = jobs.Patch(s.Context(), "work", "application/merge-patch+json", []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{})
	s.must(err)
	s.see("three indexes are done", func(ctx context.Context) (string, bool) {
		got, err := jobs.Get(ctx, "work", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%+v", got.Status), got.Status.CompletedIndexes == "0-2" && got.Status.Succeeded == completions && got.Status.CompletionTime != nil
	})
}
