package scheduler

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Eviction is what a preemption would evict from one node.
type Eviction struct {
	Node string
	// Victims come the most important first; Violations is how many of them a PodDisruptionBudget protects.
	Victims    []*corev1.Pod
	Violations int
}

// Evictions are the preemptions that would make room for a pod that fits nowhere, the mildest first, which is the scheduler's choice
// if it compares all nodes. It does not ask whether victims of the pod are leaving already.
func (j *Judge) Evictions(pod *corev1.Pod) ([]Eviction, error) {
	by := j.profiles[cmp.Or(pod.Spec.SchedulerName, corev1.DefaultSchedulerName)]
	if by == nil || by.Preemption == nil || preemptsNever(pod) {
		return nil, nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	q, err := j.ask(pod, by)
	if err != nil || q.refused != nil {
		return nil, err
	}
	defer q.engine.reset()
	return j.evictions(q), nil
}

func (j *Judge) evictions(q question) (all []Eviction) {
	allowed, fit := j.config.allowances(), q.engine.diagnose(q.pod, q.class)
	var found []*eviction
	for _, node := range fit.candidates(j.cache.nodes) {
		if v := q.engine.tryOut(q.pod, q.class, node, allowed); v != nil {
			found = append(found, v)
		}
	}
	slices.SortStableFunc(found, (*eviction).compare)
	for _, v := range found {
		told := Eviction{Node: v.node.Name, Violations: v.violations}
		for _, victim := range v.victims {
			told.Victims = append(told.Victims, victim.Pod)
		}
		all = append(all, told)
	}
	return all
}
