package core

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// nodeLost is the reason the node controllers give to pods of a vanished node.
const nodeLost = "NodeLost"

func podColumns() []resource.Column[*corev1.Pod] {
	return []resource.Column[*corev1.Pod]{
		column.Name[*corev1.Pod](),
		column.Text("Ready", "The aggregate readiness state of this pod for accepting traffic.", 0, podReadyCell),
		column.Text("Status", "The aggregate status of the containers in this pod.", 0, podStatusCell),
		{
			Name: "Restarts", Type: "string",
			Description: "The number of times the containers in this pod have been restarted and when the last container in this pod has restarted.",
			Cell:        func(pod *corev1.Pod, now time.Time) any { return podRestartsCell(pod, now) },
		},
		column.Age[*corev1.Pod](),
		column.Text("IP", corev1.PodStatus{}.SwaggerDoc()["podIP"], 1, podIPCell),
		column.Text(
			"Node",
			corev1.PodSpec{}.SwaggerDoc()["nodeName"],
			1,
			func(pod *corev1.Pod) string { return column.OrNone(pod.Spec.NodeName) },
		),
		column.Text("Nominated Node", corev1.PodStatus{}.SwaggerDoc()["nominatedNodeName"], 1, func(pod *corev1.Pod) string {
			return column.OrNone(pod.Status.NominatedNodeName)
		}),
		column.Text("Readiness Gates", corev1.PodSpec{}.SwaggerDoc()["readinessGates"], 1, podGatesCell),
	}
}

// restartable reports whether an init container keeps running beside the others.
func restartable(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name == name {
			return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
		}
	}
	return false
}

// podReadyCell counts the ready ones among the containers that are meant to run
// for the pod's whole life: sidecars and main containers.
func podReadyCell(pod *corev1.Pod) string {
	total, ready := len(pod.Spec.Containers), 0
	for i := range pod.Spec.InitContainers {
		if restartable(pod, pod.Spec.InitContainers[i].Name) {
			total++
		}
	}
	for _, s := range pod.Status.InitContainerStatuses {
		if s.Ready && isStarted(s) && restartable(pod, s.Name) {
			ready++
		}
	}
	for _, s := range pod.Status.ContainerStatuses {
		if s.Ready && s.State.Running != nil {
			ready++
		}
	}
	return fmt.Sprintf("%d/%d", ready, total)
}

func isStarted(s corev1.ContainerStatus) bool { return s.Started != nil && *s.Started }

// podStatusCell is one word for the pod's state: that of the first init container
// which is not done, else that of the containers, else the phase.
func podStatusCell(pod *corev1.Pod) string {
	reason := string(pod.Status.Phase)
	if pod.Status.Reason != "" {
		reason = pod.Status.Reason
	}
	if gated(pod) {
		reason = corev1.PodReasonSchedulingGated
	}
	initReason, initializing := initStatus(pod)
	if initReason != "" {
		reason = initReason
	}
	if !initializing {
		reason = containersStatus(pod, reason)
	}
	switch {
	case pod.DeletionTimestamp != nil && pod.Status.Reason == nodeLost:
		return "Unknown"
	case pod.DeletionTimestamp != nil && !ended(pod):
		// An ended pod that is being deleted shows how it ended.
		return "Terminating"
	}
	return reason
}

// ended reports whether all containers have stopped for good.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

func gated(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			return true
		}
	}
	return false
}

// initStatus describes the first init container that is neither done nor, as a
// sidecar, running; initializing means that it holds the others back.
func initStatus(pod *corev1.Pod) (reason string, initializing bool) {
	for i, s := range pod.Status.InitContainerStatuses {
		switch terminated, waiting := s.State.Terminated, s.State.Waiting; {
		case terminated != nil && terminated.ExitCode == 0:
			continue
		case restartable(pod, s.Name) && isStarted(s):
			continue
		case terminated != nil:
			reason = "Init:" + endReason(terminated)
		case waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing":
			reason = "Init:" + waiting.Reason
		default:
			reason = fmt.Sprintf("Init:%d/%d", i, len(pod.Spec.InitContainers))
		}
		// Once the pod is initialized, the main containers have a say too.
		return reason, !hasTrue(pod, corev1.PodInitialized)
	}
	return "", false
}

// endReason says how a container ended: its reason, else signal or exit code.
func endReason(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return fmt.Sprintf("Signal:%d", t.Signal)
	}
	return fmt.Sprintf("ExitCode:%d", t.ExitCode)
}

// containersStatus lets the containers speak, the first one having the last word.
// Completed beside running containers means that the pod still runs.
func containersStatus(pod *corev1.Pod, reason string) string {
	running := false
	for i := len(pod.Status.ContainerStatuses) - 1; i >= 0; i-- {
		s := pod.Status.ContainerStatuses[i]
		switch {
		case s.State.Waiting != nil && s.State.Waiting.Reason != "":
			reason = s.State.Waiting.Reason
		case s.State.Terminated != nil:
			reason = endReason(s.State.Terminated)
		case s.Ready && s.State.Running != nil:
			running = true
		}
	}
	if reason != "Completed" || !running {
		return reason
	}
	if hasTrue(pod, corev1.PodReady) {
		return "Running"
	}
	return "NotReady"
}

func hasTrue(pod *corev1.Pod, condition corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == condition && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

// podRestartsCell is the number of restarts and the time since the last one, as
// "2 (5m ago)". While init containers run, theirs are shown, then the others'
// with those of sidecars.
func podRestartsCell(pod *corev1.Pod, now time.Time) string {
	_, initializing := initStatus(pod)
	total, last := 0, time.Time{}
	count := func(s corev1.ContainerStatus) {
		total += int(s.RestartCount)
		if ended := s.LastTerminationState.Terminated; ended != nil && ended.FinishedAt.After(last) {
			last = ended.FinishedAt.Time
		}
	}
	for _, s := range pod.Status.InitContainerStatuses {
		if initializing || restartable(pod, s.Name) {
			count(s)
		}
	}
	if !initializing {
		for _, s := range pod.Status.ContainerStatuses {
			count(s)
		}
	}
	if total == 0 || last.IsZero() {
		return strconv.Itoa(total)
	}
	return fmt.Sprintf("%d (%s ago)", total, duration.HumanDuration(now.Sub(last)))
}

func podIPCell(pod *corev1.Pod) string {
	if len(pod.Status.PodIPs) > 0 {
		return column.OrNone(pod.Status.PodIPs[0].IP)
	}
	return column.None
}

// podGatesCell counts the readiness gates that are met.
func podGatesCell(pod *corev1.Pod) string {
	gates := pod.Spec.ReadinessGates
	if len(gates) == 0 {
		return column.None
	}
	met := 0
	for _, gate := range gates {
		if hasTrue(pod, gate.ConditionType) {
			met++
		}
	}
	return fmt.Sprintf("%d/%d", met, len(gates))
}
