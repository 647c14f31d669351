package pods

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/pods/admission"
	"github.com/setpoint-io/setpoint/agent/pods/eviction"
	"github.com/setpoint-io/setpoint/agent/pods/status"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// admit rejects a pod that sets what is the node's, and one the node has no room
// for: two schedulers, or a pod with nodeName set by hand, may overfill it. A pod
// that was started once is never rejected. m.mu is held.
func (m *Manager) admit(pod *corev1.Pod) *status.Rejection {
	if pod.Status.StartTime != nil || pod.DeletionTimestamp != nil || finished(pod) {
		return nil
	}
	if m.ShuttingDown != nil && m.ShuttingDown() {
		return &status.Rejection{Reason: "NodeShutdown", Message: "Pod was rejected: Pod was rejected as the node is shutting down."}
	}
	if m.Pressure != nil {
		if why := eviction.Admit(pod, m.Pressure()); why != "" {
			return &status.Rejection{Reason: events.Evicted, Message: "Pod was rejected: " + why}
		}
	}
	if err := podconfig.CheckSysctls(pod, m.UnsafeSysctls); err != nil {
		return &status.Rejection{Reason: "SysctlForbidden", Message: "Pod was rejected: " + err.Error()}
	}
	node := admission.Node{Others: m.others(pod.UID), Allocatable: m.Allocatable(), Features: m.Features}
	if m.Devices != nil {
		node.Managed = m.Devices.Manages
	}
	why := node.Judge(pod)
	if why != nil {
		why.Message = "Pod was rejected: " + why.Message
	}
	return why
}

// judgeUpdate tells of a change that asks for a feature which the node does not declare: servers refuse that, but for what is not theirs.
func (m *Manager) judgeUpdate(w *worker, pod *corev1.Pod) {
	old, _ := w.latest()
	if old.Generation == pod.Generation {
		return // the spec is the same
	}
	if missing := (admission.Node{Features: m.Features}).Update(old, pod); missing != "" {
		m.Events.Event(events.Pod(pod), corev1.EventTypeWarning, events.FailedNodeDeclaredFeaturesCheck, missing)
	}
}

func finished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// orphan is what is left of a pod whose API object is gone.
func orphan(key observed.Key, node string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: key.UID},
		Spec:       corev1.PodSpec{NodeName: node},
	}
	if key.GraceSeconds >= 0 {
		pod.Spec.TerminationGracePeriodSeconds = &key.GraceSeconds
	}
	return pod
}

// ignoreGone accepts answers that mean "another pod has the name by now".
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
