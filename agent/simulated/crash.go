package simulated

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/pods/status"
)

const (
	// killedExit is the exit code of a process that SIGKILL ended.
	killedExit = 137
	// reasonBackOff is the kubelet's, for a container that crashes again and again; reasonUnready for a pod with one.
	reasonBackOff = "CrashLoopBackOff"
	reasonUnready = "ContainersNotReady"
)

// Crashed reports whether a simulated pod's containers crash at each start: Crash has said so, and Mend has not taken it back. This
// package does nothing about such a pod until then, but for its deletion.
func Crashed(pod *corev1.Pod) bool {
	for i := range pod.Status.ContainerStatuses {
		if waits := pod.Status.ContainerStatuses[i].State.Waiting; waits != nil && waits.Reason == reasonBackOff {
			return true
		}
	}
	return false
}

// Crash is the status of a running pod whose containers have crashed, as by SIGKILL. Those that are restarted crash again and again, and
// wait; a pod with others alone has failed.
func Crash(pod *corev1.Pod, now metav1.Time) corev1.PodStatus {
	s := pod.Status.DeepCopy()
	restarts := false
	for i := range s.ContainerStatuses {
		c := &s.ContainerStatuses[i]
		ended := &corev1.ContainerStateTerminated{ExitCode: killedExit, Reason: "Error", FinishedAt: now, ContainerID: c.ContainerID}
		if c.State.Running != nil {
			ended.StartedAt = c.State.Running.StartedAt
		}
		c.Ready, c.Started = false, new(bool)
		if !status.MayRestart(pod, c.Name, killedExit) {
			c.State = corev1.ContainerState{Terminated: ended}
			continue
		}
		restarts = true
		c.RestartCount++
		c.LastTerminationState = corev1.ContainerState{Terminated: ended}
		c.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: reasonBackOff, Message: "back-off restarting failed container=" + c.Name + " pod=" + pod.Name,
		}}
	}
	reason := reasonUnready
	if !restarts {
		s.Phase, reason = corev1.PodFailed, "PodFailed"
	}
	setReady(s, corev1.ConditionFalse, reason, now)
	return *s
}

// Mend is the status of a pod whose containers crashed, and run now.
func Mend(pod *corev1.Pod, now metav1.Time) corev1.PodStatus {
	s := pod.Status.DeepCopy()
	for i := range s.ContainerStatuses {
		c := &s.ContainerStatuses[i]
		if c.State.Waiting == nil {
			continue
		}
		c.Ready, c.Started = true, new(true)
		c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	}
	setReady(s, corev1.ConditionTrue, "", now)
	if open := ready(pod); open.Status != corev1.ConditionTrue {
		shown := conditionIn(s, corev1.PodReady)
		shown.Status, shown.Reason, shown.Message = open.Status, open.Reason, open.Message
	}
	return *s
}

// setReady says of a pod and its containers whether they are ready.
func setReady(s *corev1.PodStatus, is corev1.ConditionStatus, reason string, now metav1.Time) {
	var names []string
	for i := range s.ContainerStatuses {
		names = append(names, s.ContainerStatuses[i].Name)
	}
	for _, of := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		c := conditionIn(s, of)
		c.Status, c.Reason, c.Message, c.LastTransitionTime = is, reason, "", now
		if reason == reasonUnready {
			c.Message = fmt.Sprintf("containers with unready status: [%s]", strings.Join(names, " "))
		}
	}
}

// conditionIn is a condition of a status, which gets one if it has none.
func conditionIn(s *corev1.PodStatus, of corev1.PodConditionType) *corev1.PodCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == of {
			return &s.Conditions[i]
		}
	}
	s.Conditions = append(s.Conditions, corev1.PodCondition{Type: of})
	return &s.Conditions[len(s.Conditions)-1]
}

// former is what is known of a container's earlier runs.
func former(pod *corev1.Pod, name string) (restarts int32, last corev1.ContainerState) {
	for i := range pod.Status.ContainerStatuses {
		if s := &pod.Status.ContainerStatuses[i]; s.Name == name {
			return s.RestartCount, s.LastTerminationState
		}
	}
	return 0, corev1.ContainerState{}
}
