package simulated

import (
	"encoding/json"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/pods/status"
)

// Annotations of a pod of which no container is restarted, since restartPolicy is Never or OnFailure: it ends by itself.
const (
	// RunAnnotation is how long its containers run, "30s". Without it, or if it is no duration, those whose command is sleep run as
	// long as that says, those of the image pause for ever, and others for DefaultRun.
	RunAnnotation = "setpoint.io/simulated-run"
	// ExitCodeAnnotation is with what they end, "1"; 0 without it or if it is no exit code. A pod that is restarted
	// on failure fails again and again: it goes on running.
	ExitCodeAnnotation = "setpoint.io/simulated-exit-code"
	// DefaultRun is long enough to be seen.
	DefaultRun = time.Second
)

// foreverRun is longer than any cluster lives.
const foreverRun = 100 * 365 * 24 * time.Hour

// ends returns when a running pod ends by itself; false for never.
func ends(pod *corev1.Pod) (at time.Time, does bool) {
	code := exitCode(pod)
	if slices.ContainsFunc(pod.Spec.Containers, func(c corev1.Container) bool { return status.MayRestart(pod, c.Name, code) }) {
		return time.Time{}, false
	}
	return began(pod).Add(runs(pod)), true
}

// began is when the last container that runs was started.
func began(pod *corev1.Pod) time.Time {
	started := pod.CreationTimestamp
	for i := range pod.Status.ContainerStatuses {
		if running := pod.Status.ContainerStatuses[i].State.Running; running != nil && running.StartedAt.After(started.Time) {
			started = running.StartedAt
		}
	}
	return started.Time
}

// runs is how long the containers run: as long as the one that runs longest.
func runs(pod *corev1.Pod) time.Duration {
	if run, err := time.ParseDuration(pod.Annotations[RunAnnotation]); err == nil && run >= 0 {
		return run
	}
	longest := DefaultRun
	for i := range pod.Spec.Containers {
		longest = max(longest, runsFor(&pod.Spec.Containers[i]))
	}
	return longest
}

// runsFor knows two programs: sleep, and the image pause, which never ends. It is 0 for others.
func runsFor(c *corev1.Container) time.Duration {
	command := slices.Concat(c.Command, c.Args)
	if name, _, _ := strings.Cut(path.Base(c.Image), ":"); name == "pause" && len(command) == 0 {
		return foreverRun
	}
	return sleeps(command)
}

// sleeps is how long a command of sleep and one number of seconds takes, at most foreverRun; 0 for any other command.
func sleeps(command []string) time.Duration {
	if len(command) != 2 || path.Base(command[0]) != "sleep" {
		return 0
	}
	seconds, err := strconv.ParseFloat(command[1], 64)
	switch {
	case err != nil || seconds < 0 || math.IsNaN(seconds):
		return 0
	case seconds > foreverRun.Seconds(): // "infinity" too
		return foreverRun
	}
	return time.Duration(seconds * float64(time.Second))
}

func exitCode(pod *corev1.Pod) int32 {
	code, err := strconv.ParseUint(pod.Annotations[ExitCodeAnnotation], 10, 8)
	if err != nil {
		return 0
	}
	return int32(code)
}

func (f *fleet) finishedPatch(pod *corev1.Pod, now metav1.Time) ([]byte, error) {
	return json.Marshal(map[string]any{
		"metadata": asRead(pod),
		"status":   f.finished(pod, now),
	})
}

// finished is the whole status of a pod whose containers have ended.
func (f *fleet) finished(pod *corev1.Pod, now metav1.Time) corev1.PodStatus {
	s, code := f.running(pod, now), exitCode(pod)
	s.Phase = corev1.PodSucceeded
	reason, podReason := "Completed", "PodCompleted"
	if code != 0 {
		s.Phase, reason, podReason = corev1.PodFailed, "Error", "PodFailed"
	}
	for i := range s.ContainerStatuses {
		c := &s.ContainerStatuses[i]
		c.Ready, c.Started = false, new(bool)
		c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: code, Reason: reason, StartedAt: c.State.Running.StartedAt, FinishedAt: now, ContainerID: c.ContainerID,
		}}
	}
	for i := range s.Conditions {
		c := &s.Conditions[i]
		if c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			c.Status, c.Reason, c.LastTransitionTime = corev1.ConditionFalse, podReason, now
		}
	}
	return s
}
