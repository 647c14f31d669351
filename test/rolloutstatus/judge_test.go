package rolloutstatus

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// judge reads versions of one workload and of its pods in the order in which they were stored.
type judge struct {
	// nodes is how many pods a DaemonSet is to have.
	nodes int
	pods  map[string]*corev1.Pod
	// generation is the one of the workload that was read last; met says that its pods ran at some time since it came.
	generation int64
	template   string
	met        bool
	workload   *unstructured.Unstructured
	// findings are the versions that a rule called finished too early; told counts those that it rightly did.
	findings []string
	told     map[string]int
}

func newJudge(nodes int) *judge {
	return &judge{nodes: nodes, pods: map[string]*corev1.Pod{}, told: map[string]int{}}
}

// seePod reads a version of a pod; gone is that it was deleted.
func (j *judge) seePod(pod *corev1.Pod, gone bool) {
	j.pods[pod.Name] = pod
	if gone {
		delete(j.pods, pod.Name)
	}
	j.look()
}

// seeWorkload reads a version of the workload and asks the rules.
func (j *judge) seeWorkload(object *unstructured.Unstructured) {
	template := templateOf(object)
	if j.workload == nil || template != j.template || wanted(object) > wanted(j.workload) {
		j.met = false // a new template, or more pods: another rollout
	}
	j.workload, j.template = object, template
	j.look()
	for _, r := range rules {
		if r.applies != nil && !r.applies(object) {
			continue
		}
		j.told[r.name] += 0
		if !r.finished(object) {
			continue
		}
		if j.told[r.name]++; !j.met {
			status, _, _ := unstructured.NestedMap(object.Object, "status")
			delete(status, "conditions")
			j.findings = append(j.findings, fmt.Sprintf("%s: generation %d is called finished, and %s\n\tstatus %v",
				r.name, object.GetGeneration(), j.how(), status))
		}
	}
}

// look notes whether the pods are what the workload wants.
func (j *judge) look() {
	if j.workload != nil && int64(j.current()) >= j.want() && j.outdated() == 0 {
		j.met = true
	}
}

func (j *judge) want() int64 {
	if j.workload.GetKind() == "DaemonSet" {
		return int64(j.nodes)
	}
	return wanted(j.workload)
}

// current is how many pods of the newest template are ready.
func (j *judge) current() (n int) {
	for _, pod := range j.pods {
		if j.isCurrent(pod) && pod.DeletionTimestamp == nil && ready(pod) {
			n++
		}
	}
	return n
}

// outdated is how many pods of another template nobody has asked to stop.
func (j *judge) outdated() (n int) {
	for _, pod := range j.pods {
		if !j.isCurrent(pod) && pod.DeletionTimestamp == nil {
			n++
		}
	}
	return n
}

func (j *judge) how() string {
	return fmt.Sprintf("%d of %d pods of its template are ready, %d of others are left", j.current(), j.want(), j.outdated())
}

func (j *judge) isCurrent(pod *corev1.Pod) bool {
	return markOf(pod.Annotations, pod.Spec.Containers) == j.template
}

// templateOf is what tells the templates of a test apart.
func templateOf(object *unstructured.Unstructured) string {
	fields, _, _ := unstructured.NestedMap(object.Object, "spec", "template")
	var template corev1.PodTemplateSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &template); err != nil {
		return err.Error()
	}
	return markOf(template.Annotations, template.Spec.Containers)
}

func markOf(annotations map[string]string, containers []corev1.Container) string {
	return containers[0].Image + " " + annotations[restartedAt]
}

func ready(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
