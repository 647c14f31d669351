package explain

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
)

// notReady explains a pod that has a node and is not ready.
func (e *explainer) notReady(name Object, pod *corev1.Pod) finding {
	f := finding{}
	e.packetsPass(&f, pod)
	statuses := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	for i := range statuses {
		e.container(&f, name, pod, &statuses[i], i < len(pod.Status.InitContainerStatuses))
	}
	e.readinessGates(&f, name, pod)
	if len(f.causes) == 0 {
		e.lastTold(&f, name, pod)
	}
	return f.conclude(name.String()+" runs on "+pod.Spec.NodeName+" and is not ready", name.String()+" is starting on "+pod.Spec.NodeName)
}

// lastTold blames what the pod's events say last: that an image is being fetched, or the newest warning.
func (e *explainer) lastTold(f *finding, name Object, pod *corev1.Pod) {
	last, warning := e.lastEvent(pod, ""), e.lastWarning(pod)
	switch {
	case last != nil && last.Reason == pulling:
		began := time.Unix(0, toldAt(last))
		f.blame(Cause{
			Object: name, What: fmt.Sprintf("its node fetches an image (%s ago: %s)", duration.HumanDuration(e.Now().Sub(began)), last.Message),
			Change: "the node must reach the image's registry, and its DNS: an error is told when the fetch ends",
		})
	case warning != nil:
		f.blame(Cause{Object: name, What: warning.Reason + ": " + warning.Message})
	}
}

// pulling is the reason of events of an agent, or a kubelet, that fetches an image.
const pulling = "Pulling"

// container blames or clears one container.
func (e *explainer) container(f *finding, name Object, pod *corev1.Pod, status *corev1.ContainerStatus, isInit bool) {
	waiting, ended := status.State.Waiting, status.State.Terminated
	switch {
	case waiting != nil && (waiting.Reason == "ContainerCreating" || waiting.Reason == "PodInitializing" || waiting.Reason == ""):
	case waiting != nil:
		f.blame(waits(name, status))
	case ended != nil && ended.ExitCode == 0:
		f.clear(name, "container %s ended well", status.Name)
	case ended != nil:
		f.blame(Cause{
			Object: name, What: fmt.Sprintf("container %s ended with code %d (%s)", status.Name, ended.ExitCode, ended.Reason),
			Change: "see its log: " + kubectl(name.Namespace, "logs", name.Name, "-c", status.Name),
		})
	case isInit && status.State.Running != nil && !status.Ready && !isSidecar(pod, status.Name):
		f.blame(Cause{Object: name, What: fmt.Sprintf("init container %s is still running", status.Name)})
	case status.State.Running != nil && !status.Ready:
		f.blame(e.probe(name, pod, status))
	case status.Ready:
		f.clear(name, "container %s is ready", status.Name)
	}
}

func isSidecar(pod *corev1.Pod, container string) bool {
	return slices.ContainsFunc(pod.Spec.InitContainers, func(c corev1.Container) bool {
		return c.Name == container && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	})
}

// waits tells why a container does not start.
func waits(name Object, status *corev1.ContainerStatus) Cause {
	waiting := status.State.Waiting
	c := Cause{Object: name, What: fmt.Sprintf("container %s waits: %s: %s", status.Name, waiting.Reason, waiting.Message)}
	switch waiting.Reason {
	case "ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName":
		c.Change = fmt.Sprintf("the image %q must exist where the node gets its images, or another be named", status.Image)
	case "CrashLoopBackOff":
		if last := status.LastTerminationState.Terminated; last != nil {
			c.What += fmt.Sprintf(" (it ended with code %d, %s, and was restarted %d times)", last.ExitCode, last.Reason, status.RestartCount)
		}
		c.Change = "its program must not end; see its log: " + kubectl(name.Namespace, "logs", name.Name, "-c", status.Name, "--previous")
	case "CreateContainerConfigError":
		c.Change = "create what the container's settings name"
	}
	return c
}

// probe blames the probe that a running container fails.
func (e *explainer) probe(name Object, pod *corev1.Pod, status *corev1.ContainerStatus) Cause {
	probe := "readiness"
	if status.Started != nil && !*status.Started {
		probe = "startup"
	}
	c := Cause{
		Object: name, What: fmt.Sprintf("container %s runs, and its %s probe does not succeed", status.Name, probe),
		Change: "the container must answer the probe, or the probe be another",
	}
	if warning := e.lastWarning(pod); warning != nil && warning.Reason == "Unhealthy" {
		c.What += ": " + warning.Message
	}
	return c
}

func (e *explainer) readinessGates(f *finding, name Object, pod *corev1.Pod) {
	for _, gate := range pod.Spec.ReadinessGates {
		if conditionOf(pod, gate.ConditionType) == corev1.ConditionTrue {
			f.clear(name, "the readiness gate %s is open", gate.ConditionType)
			continue
		}
		f.blame(Cause{
			Object: name, What: fmt.Sprintf("the readiness gate %s is not open", gate.ConditionType),
			Change: "whoever keeps the condition " + string(gate.ConditionType) + " must set it to True",
		})
	}
}

// lastWarning is the newest warning about an object; nil if there is none.
func (e *explainer) lastWarning(about metav1.Object) *corev1.Event {
	return e.lastEvent(about, corev1.EventTypeWarning)
}

// lastEvent is the newest event of a type about an object, "" being all types; nil if there is none.
func (e *explainer) lastEvent(about metav1.Object, of string) *corev1.Event {
	var last *corev1.Event
	for _, event := range list[*corev1.Event](e, Events, about.GetNamespace()) {
		if of != "" && event.Type != of || event.InvolvedObject.UID != about.GetUID() {
			continue
		}
		if last == nil || toldAt(last) < toldAt(event) {
			last = event
		}
	}
	return last
}

// toldAt is when an event was told last, in nanoseconds.
func toldAt(event *corev1.Event) int64 {
	at := max(event.LastTimestamp.UnixNano(), event.EventTime.UnixNano(), event.CreationTimestamp.UnixNano())
	if event.Series != nil {
		at = max(at, event.Series.LastObservedTime.UnixNano())
	}
	return at
}
