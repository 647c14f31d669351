package podautoscaler

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcehelpers "k8s.io/component-helpers/resource"

	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

const (
	// cpuInitializationPeriod is how long after its start a pod's use of CPU may be that of starting; upstream's.
	cpuInitializationPeriod = 5 * time.Minute
	// initialReadinessDelay is how long after its start a change to unready still is of the start; upstream's.
	initialReadinessDelay = 30 * time.Second
)

// groups are the pods of a target by what is known of their use.
type groups struct {
	ready            int // with a sample that counts
	unready, missing []string
	ignored          []string // going or failed
}

func group(pods []*corev1.Pod, samples map[string]sample, resource corev1.ResourceName, now time.Time) groups {
	var g groups
	for _, pod := range pods {
		s, found := samples[pod.Name]
		switch {
		case pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed:
			g.ignored = append(g.ignored, pod.Name)
		case pod.Status.Phase == corev1.PodPending:
			g.unready = append(g.unready, pod.Name)
		case !found:
			g.missing = append(g.missing, pod.Name)
		case resource == corev1.ResourceCPU && starting(pod, s, now):
			g.unready = append(g.unready, pod.Name)
		default:
			g.ready++
		}
	}
	return g
}

// starting reports whether a sample of CPU is that of a start and says nothing of the load.
func starting(pod *corev1.Pod, s sample, now time.Time) bool {
	ready := podstate.Condition(pod, corev1.PodReady)
	if ready == nil || pod.Status.StartTime == nil {
		return true
	}
	started, since := pod.Status.StartTime.Time, ready.LastTransitionTime.Time
	if started.Add(cpuInitializationPeriod).After(now) {
		return ready.Status == corev1.ConditionFalse || s.at.Before(since.Add(s.window))
	}
	return ready.Status == corev1.ConditionFalse && started.Add(initialReadinessDelay).After(since)
}

// drop removes the samples that do not count.
func (g groups) drop(samples map[string]sample) {
	for _, names := range [][]string{g.ignored, g.unready} {
		for _, name := range names {
			delete(samples, name)
		}
	}
}

func readyPods(pods []*corev1.Pod) (ready int) {
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodRunning && podstate.Ready(pod) {
			ready++
		}
	}
	return ready
}

// requestsOf is what each pod requests, in thousandths: one container, or the pod. Of several that request nothing the first by name is
// told, so that passes over the same pods, which come in any order, say the same.
func requestsOf(pods []*corev1.Pod, container string, resource corev1.ResourceName) (map[string]int64, error) {
	requests := make(map[string]int64, len(pods))
	var first error
	var of string
	for _, pod := range pods {
		request, err := requestOf(pod, container, resource)
		if err != nil && (first == nil || pod.Name < of) {
			first, of = err, pod.Name
		}
		requests[pod.Name] = request
	}
	if first != nil {
		return nil, first
	}
	return requests, nil
}

func requestOf(pod *corev1.Pod, container string, resource corev1.ResourceName) (int64, error) {
	if container == "" && resourcehelpers.IsPodLevelRequestsSet(pod) {
		q, found := resourcehelpers.PodRequests(pod, resourcehelpers.PodResourcesOptions{})[resource]
		if !found {
			return 0, fmt.Errorf("missing pod-level request for %s in Pod %s", resource, pod.Name)
		}
		return milli(q), nil
	}
	var total int64
	for _, c := range running(pod) {
		if container != "" && container != c.Name {
			continue
		}
		q, found := c.Resources.Requests[resource]
		if !found {
			return 0, fmt.Errorf("missing request for %s in container %s of Pod %s", resource, c.Name, pod.Name)
		}
		if container != "" {
			return milli(q), nil
		}
		total = add(total, milli(q))
	}
	if container != "" {
		return 0, fmt.Errorf("container %s not found in Pod %s", container, pod.Name)
	}
	return total, nil
}

// running are the containers that run while the pod does.
func running(pod *corev1.Pod) []corev1.Container {
	containers := append([]corev1.Container{}, pod.Spec.Containers...)
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	return containers
}
