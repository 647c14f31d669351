package whatif

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/simulated"
)

const (
	// startMax is the longest time to readiness that is believed.
	startMax = 10 * time.Minute
	// stuckAfter is how old a pod that never came to run must be, for others of its kind to be taken for such.
	stuckAfter = time.Minute
)

// kindOf is what pods have in common that behave alike: the images of their containers and what they are told to do.
func kindOf(pod *corev1.Pod) string {
	var b strings.Builder
	b.WriteString(pod.Namespace)
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		for _, part := range slices.Concat([]string{c.Name, c.Image}, c.Command, c.Args) {
			b.WriteString("\x00" + part)
		}
	}
	return b.String()
}

// habits are how pods of each kind were seen to behave.
type habits struct {
	byKind map[string]simulated.Habit
	// there are the pods of the fork's beginning that run to an end nobody has seen, stuck those of them that had their time to start.
	there, stuck map[types.UID]bool
}

// sample is what was seen of one kind.
type sample struct {
	started, ran []time.Duration
	// ready: one was seen ready, stuck: one did not come to it.
	ready, stuck bool
}

func learn(pods []*corev1.Pod, now time.Time) *habits {
	samples := map[string]*sample{}
	h := &habits{byKind: map[string]simulated.Habit{}, there: map[types.UID]bool{}, stuck: map[types.UID]bool{}}
	for _, pod := range pods {
		h.there[pod.UID] = true
		kind := kindOf(pod)
		if samples[kind] == nil {
			samples[kind] = &sample{}
		}
		samples[kind].see(pod, now)
	}
	for kind, s := range samples {
		habit := simulated.Habit{ReadyAfter: median(s.started), Runs: median(s.ran), Never: s.stuck && !s.ready && len(s.ran) == 0}
		if habit.Runs == 0 {
			habit.Runs = -1 // none of it was seen to end
		}
		h.byKind[kind] = habit
	}
	for _, pod := range pods {
		h.stuck[pod.UID] = waits(pod) && now.Sub(h.byKind[kindOf(pod)].Ready(pod)) > stuckAfter
	}
	return h
}

func (s *sample) see(pod *corev1.Pod, now time.Time) {
	ready := condition(pod, corev1.PodReady)
	switch {
	case pod.DeletionTimestamp != nil || pod.Spec.NodeName == "":
	case pod.Status.Phase == corev1.PodSucceeded:
		for i := range pod.Status.ContainerStatuses {
			if end := pod.Status.ContainerStatuses[i].State.Terminated; end != nil {
				s.ran = append(s.ran, max(time.Second, end.FinishedAt.Sub(end.StartedAt.Time)))
			}
		}
	case ready != nil && ready.Status == corev1.ConditionTrue:
		s.ready = true
		if took := startOf(pod, ready.LastTransitionTime); took > 0 {
			s.started = append(s.started, took)
		}
	case waits(pod):
		s.stuck = s.stuck || now.Sub(simulated.Habit{}.Ready(pod)) > stuckAfter
	}
}

// waits is true for a pod that has a node and is not ready, though its node is there.
func waits(pod *corev1.Pod) bool {
	ready := condition(pod, corev1.PodReady)
	return pod.DeletionTimestamp == nil && pod.Spec.NodeName != "" && !over(pod) &&
		ready != nil && ready.Status != corev1.ConditionTrue && ready.Reason != "NodeLost"
}

// startOf is how long a pod took to be ready; 0 if that cannot be told, since it was restarted or became ready again.
func startOf(pod *corev1.Pod, ready metav1.Time) time.Duration {
	for i := range pod.Status.ContainerStatuses {
		if pod.Status.ContainerStatuses[i].RestartCount > 0 {
			return 0
		}
	}
	bound := condition(pod, corev1.PodScheduled)
	if bound == nil {
		return 0
	}
	if took := ready.Sub(bound.LastTransitionTime.Time); took > 0 && took <= startMax {
		return took
	}
	return 0
}

func median(of []time.Duration) time.Duration {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return of[len(of)/2]
}

func condition(pod *corev1.Pod, of corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == of {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// of is for setpoint.Played. A kind that was never seen behaves as simulated pods do.
func (h *habits) of(pod *corev1.Pod) simulated.Habit {
	habit, known := h.byKind[kindOf(pod)]
	if !known && h.there[pod.UID] {
		return simulated.Habit{Runs: -1}
	}
	habit.Never = habit.Never || h.stuck[pod.UID]
	return habit
}
