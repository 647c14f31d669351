package status

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

const (
	reasonCreating     = "ContainerCreating"
	reasonInitializing = "PodInitializing"
	reasonUnknown      = "ContainerStatusUnknown"
	reasonCompleted    = "Completed"
	reasonError        = "Error"
	// exitUnknown is the code of a container whose end nobody saw.
	exitUnknown = 137
)

// containers fills in the status of every container of the spec.
func (in *Input) containers(s *corev1.PodStatus) {
	spec := &in.Pod.Spec
	waiting := reasonCreating
	if len(spec.InitContainers) > 0 {
		waiting = reasonInitializing
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		s.InitContainerStatuses = append(
			s.InitContainerStatuses,
			in.container(c, find(in.Pod.Status.InitContainerStatuses, c.Name), waiting, !IsSidecar(c)),
		)
	}
	for i := range spec.Containers {
		c := &spec.Containers[i]
		s.ContainerStatuses = append(s.ContainerStatuses, in.container(c, find(in.Pod.Status.ContainerStatuses, c.Name), waiting, false))
	}
	for i := range spec.EphemeralContainers {
		c := Ephemeral(in.Pod, i)
		one := in.container(c, find(in.Pod.Status.EphemeralContainerStatuses, c.Name), reasonCreating, true)
		one.Ready = false // nothing waits for them
		s.EphemeralContainerStatuses = append(s.EphemeralContainerStatuses, one)
	}
}

// Ephemeral is the pod's ith ephemeral container, as the container that it is.
func Ephemeral(pod *corev1.Pod, i int) *corev1.Container {
	return (*corev1.Container)(&pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
}

// IsSidecar reports whether c is an init container that keeps running.
func IsSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

func find(list []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
	for i := range list {
		if list[i].Name == name {
			return &list[i]
		}
	}
	return nil
}

// container is the status of c. Runs once containers are those that only have
// to complete: they are ready when they have.
func (in *Input) container(c *corev1.Container, old *corev1.ContainerStatus, waiting string, runsOnce bool) corev1.ContainerStatus {
	started := false
	latest := in.Runtime.Latest(c.Name)
	s := corev1.ContainerStatus{Name: c.Name, Image: c.Image, Started: &started, VolumeMounts: mounts(c, latest)}
	switch {
	case latest != nil:
		in.fromRuntime(&s, latest, c.Name, waiting)
	case !in.fromRestart(&s, old, waiting):
		in.fromMemory(&s, old, waiting)
	}
	in.overlayWaiting(&s)
	if in.Ended && in.wasInitialised() && s.State.Running == nil && s.State.Terminated == nil {
		s.State = corev1.ContainerState{Terminated: unknownEnd("The container could not be located when the pod was terminated")}
	}
	switch {
	case s.State.Running != nil:
		started = in.Started(latest)
		s.Ready = !runsOnce && started && in.Ready(latest)
	case s.State.Terminated != nil:
		s.Ready = runsOnce && s.State.Terminated.ExitCode == 0
	}
	in.resources(&s, c, latest)
	return s
}

// wasInitialised: the main containers had their turn, so one without an end has
// lost it. Behind a failed init container they are merely waiting.
func (in *Input) wasInitialised() bool {
	if len(in.Pod.Spec.InitContainers) == 0 || in.anyMainSeen() {
		return true
	}
	for i := range in.Pod.Status.ContainerStatuses {
		if in.Pod.Status.ContainerStatuses[i].ContainerID != "" {
			return true
		}
	}
	return false
}

// fromMemory is the status of a container the runtime has never seen, or has
// forgotten with the rest of the machine's state.
func (in *Input) fromMemory(s, old *corev1.ContainerStatus, waiting string) {
	s.State.Waiting = &corev1.ContainerStateWaiting{Reason: waiting}
	if old == nil {
		return
	}
	s.RestartCount, s.LastTerminationState = old.RestartCount, old.LastTerminationState
	switch {
	case old.State.Terminated != nil && (in.Ended || !MayRestart(in.Pod, s.Name, old.State.Terminated.ExitCode)):
		s.State, s.ContainerID, s.ImageID = old.State, old.ContainerID, old.ImageID
	case old.State.Terminated != nil:
		s.LastTerminationState = old.State
	case old.State.Running != nil && !MayRestart(in.Pod, s.Name, exitUnknown):
		s.State, s.ContainerID, s.ImageID = corev1.ContainerState{
			Terminated: unknownEnd("The container could not be located when the pod was terminated"),
		}, old.ContainerID, old.ImageID
		s.State.Terminated.ContainerID = old.ContainerID
	case old.State.Running != nil:
		s.LastTerminationState.Terminated = unknownEnd(
			"The container could not be located when the pod was deleted.  The container used to be Running",
		)
		s.LastTerminationState.Terminated.ContainerID = old.ContainerID
	}
}

func unknownEnd(message string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{Reason: reasonUnknown, Message: message, ExitCode: exitUnknown}
}

func (in *Input) fromRuntime(s *corev1.ContainerStatus, latest *observed.Container, name, waiting string) {
	s.RestartCount = int32(latest.RestartCount())
	s.ContainerID = in.id(latest)
	s.ImageID = imageID(latest)
	s.User = user(latest)
	if image := latest.Image.GetImage(); image != "" {
		s.Image = image
	}
	switch latest.State {
	case runtimeapi.ContainerState_CONTAINER_RUNNING:
		s.State.Running = &corev1.ContainerStateRunning{StartedAt: when(latest.StartedAt)}
	case runtimeapi.ContainerState_CONTAINER_EXITED:
		s.State.Terminated = in.terminated(latest)
	default:
		s.State.Waiting = &corev1.ContainerStateWaiting{Reason: waiting}
	}
	previous := in.Runtime.Previous(name)
	if removed := in.Removed[name]; previous == nil && removed != nil && removed.SandboxID == latest.SandboxID {
		previous = removed
	}
	if previous != nil && previous.Exited() {
		s.LastTerminationState.Terminated = in.terminated(previous)
	} else if old := in.oldStatus(name); previous == nil && old != nil {
		s.LastTerminationState = carriedEnd(old, s)
	}
}

// carriedEnd keeps the end of an incarnation the runtime no longer has.
func carriedEnd(old, s *corev1.ContainerStatus) corev1.ContainerState {
	if old.RestartCount < s.RestartCount && old.State.Terminated != nil {
		return old.State
	}
	return old.LastTerminationState
}

func (in *Input) oldStatus(name string) *corev1.ContainerStatus {
	if s := find(in.Pod.Status.ContainerStatuses, name); s != nil {
		return s
	}
	return find(in.Pod.Status.InitContainerStatuses, name)
}

func (in *Input) terminated(c *observed.Container) *corev1.ContainerStateTerminated {
	t := &corev1.ContainerStateTerminated{
		ExitCode:    c.ExitCode,
		Reason:      c.Reason,
		Message:     c.Message,
		StartedAt:   when(c.StartedAt),
		FinishedAt:  when(c.FinishedAt),
		ContainerID: in.id(c),
	}
	if t.Reason == "" && t.ExitCode == 0 {
		t.Reason = reasonCompleted
	} else if t.Reason == "" {
		t.Reason = reasonError
	}
	if in.TerminationMessage != nil {
		if m := in.TerminationMessage(c); m != "" {
			t.Message = m
		}
	}
	return t
}

// overlayWaiting shows why a container that ended, or never was, is not
// running; its end moves to lastState.
func (in *Input) overlayWaiting(s *corev1.ContainerStatus) {
	w, ok := in.Waiting[s.Name]
	if !ok || s.State.Running != nil || in.Ended {
		return
	}
	if end := s.State.Terminated; end != nil {
		if !w.Restarts && !MayRestart(in.Pod, s.Name, end.ExitCode) {
			return // it waits for nothing; the API refuses such an end that is none any more
		}
		s.LastTerminationState = s.State
	}
	s.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: w.Reason, Message: w.Message}}
}

func (in *Input) id(c *observed.Container) string { return in.RuntimeName + "://" + c.Id }

func imageID(c *observed.Container) string {
	if c.ImageRef != "" {
		return c.ImageRef
	}
	return c.ImageId
}

// when converts CRI nanoseconds to the API's whole seconds; 0 stays zero.
func when(nanos int64) metav1.Time {
	if nanos == 0 {
		return metav1.Time{}
	}
	return metav1.NewTime(time.Unix(0, nanos).Truncate(time.Second))
}

// LastExit is how the named container ended as far as the API knows, for a
// runtime that has forgotten it: one that was running ended unseen.
func LastExit(pod *corev1.Pod, name string) (code int32, ran bool) {
	s := find(pod.Status.ContainerStatuses, name)
	if s == nil {
		s = find(pod.Status.EphemeralContainerStatuses, name)
	}
	switch {
	case s == nil:
		return 0, false
	case s.State.Terminated != nil:
		return s.State.Terminated.ExitCode, true
	case s.State.Running != nil:
		return exitUnknown, true
	default:
		return 0, false
	}
}
