package job

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/adopt"
)

const (
	// indexVariable is the environment variable in which containers find their index.
	indexVariable = "JOB_COMPLETION_INDEX"
	// generateMax is how long the given part of a generated name may be.
	generateMax = 58
)

// newPod is a pod after the Job's template, for an index or noIndex. before is the pod of the index that failed last.
func newPod(job *batchv1.Job, index int, before *corev1.Pod) *corev1.Pod {
	template := job.Spec.Template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName:    job.Name + "-",
			Namespace:       job.Namespace,
			Labels:          maps.Clone(template.Labels),
			Annotations:     maps.Clone(template.Annotations),
			Finalizers:      slices.Clone(template.Finalizers),
			OwnerReferences: []metav1.OwnerReference{adopt.Reference(job, kind)},
		},
		Spec: template.Spec,
	}
	if !tracked(pod) {
		pod.Finalizers = append(pod.Finalizers, batchv1.JobTrackingFinalizer)
	}
	if index != noIndex {
		setIndex(pod, job, index)
		if job.Spec.BackoffLimitPerIndex != nil {
			setFailures(pod, job, before)
		}
	}
	return pod
}

// setIndex tells the pod its index: by label, annotation, host name and in the environment.
func setIndex(pod *corev1.Pod, job *batchv1.Job, index int) {
	text := strconv.Itoa(index)
	metav1.SetMetaDataLabel(&pod.ObjectMeta, batchv1.JobCompletionIndexAnnotation, text)
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, batchv1.JobCompletionIndexAnnotation, text)
	pod.Spec.Hostname = job.Name + "-" + text
	end := "-" + text + "-"
	pod.GenerateName = job.Name[:min(len(job.Name), generateMax-len(end))] + end
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			setIndexVariable(&list[i])
		}
	}
}

func setIndexVariable(c *corev1.Container) {
	if slices.ContainsFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == indexVariable }) {
		return
	}
	c.Env = append(c.Env, corev1.EnvVar{Name: indexVariable, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
		FieldPath: fmt.Sprintf("metadata.labels['%s']", batchv1.JobCompletionIndexAnnotation),
	}}})
}

// setFailures hands on how often the index has failed.
func setFailures(pod *corev1.Pod, job *batchv1.Job, before *corev1.Pod) {
	var counted, ignored int
	if before != nil {
		counted, ignored = countedFailures(before), ignoredFailures(before)
		if judge(job, before).counts {
			counted++
		} else {
			ignored++
		}
	}
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, batchv1.JobIndexFailureCountAnnotation, strconv.Itoa(counted))
	if ignored > 0 {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, batchv1.JobIndexIgnoredFailureCountAnnotation, strconv.Itoa(ignored))
	}
}
