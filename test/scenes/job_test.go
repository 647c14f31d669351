package scenes

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// job has its pods deleted while they run, and still ends with exactly as many successes as it wants.
func job(s *scene) {
	parallelism, completions := int32(3), int32(6)
	work := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "count"},
		Spec: batchv1.JobSpec{
			Parallelism: &parallelism, Completions: &completions,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "count"}},
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
					Containers: []corev1.Container{{Name: "c", Image: "busybox", Command: []string{"sleep", "1"}}}},
			},
		},
	}
	jobs := s.client.BatchV1().Jobs(s.namespace)
	if _, err := jobs.Create(s.Context(), work, metav1.CreateOptions{}); err != nil {
		s.Fatal(err)
	}
	var live []corev1.Pod
	s.see("three pods", func(context.Context) (string, bool) {
		live = s.pods("count")
		return fmt.Sprint(len(live)), len(live) == int(parallelism)
	})
	for _, pod := range live[:2] {
		if err := s.client.CoreV1().Pods(s.namespace).Delete(s.Context(), pod.Name, metav1.DeleteOptions{}); !gone(err) {
			s.Fatal(err)
		}
	}
	s.see("six successes", func(ctx context.Context) (string, bool) {
		got, err := jobs.Get(ctx, "count", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		if got.Status.Succeeded > completions || got.Status.Active > parallelism {
			s.Errorf("%+v", got.Status)
		}
		return fmt.Sprintf("%+v", got.Status), got.Status.Succeeded == completions && got.Status.CompletionTime != nil
	})
}
