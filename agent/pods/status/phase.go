package status

import corev1 "k8s.io/api/core/v1"

// tally counts the states that decide a phase. Those that are over have ended and do not run again.
type tally struct {
	unknown, running, stopped, succeeded, over, waiting int
	initPending, initFailed, initOver, sidecarPending   int
}

// phase is upstream's: what the containers' states add up to.
func (in *Input) phase(s *corev1.PodStatus) corev1.PodPhase {
	t := count(in.Pod, s)
	if in.RestartsAll {
		t.initOver, t.over = 0, 0 // each runs again
	}
	if t.initOver > 0 {
		return corev1.PodFailed
	}
	if in.Ended {
		return t.ended()
	}
	switch {
	case t.initPending > 0 || t.initFailed > 0 || t.waiting > 0:
		return corev1.PodPending
	case t.sidecarPending > 0 && t.running+t.stopped == 0:
		return corev1.PodPending
	case t.running > 0 && t.unknown == 0:
		return corev1.PodRunning
	case t.stopped > 0 && t.unknown == 0:
		return t.stoppedPhase()
	default:
		return corev1.PodPending
	}
}

// ended is the phase of a pod whose containers were all stopped.
func (t tally) ended() corev1.PodPhase {
	if t.running+t.waiting+t.unknown == 0 && t.stopped == t.succeeded && t.stopped > 0 && t.initPending == 0 {
		return corev1.PodSucceeded
	}
	return corev1.PodFailed
}

// stoppedPhase is the phase when no container runs and all have run.
func (t tally) stoppedPhase() corev1.PodPhase {
	switch {
	case t.stopped > t.over:
		return corev1.PodRunning
	case t.stopped == t.succeeded:
		return corev1.PodSucceeded
	default:
		return corev1.PodFailed
	}
}

func count(pod *corev1.Pod, s *corev1.PodStatus) tally {
	var t tally
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if one := find(s.InitContainerStatuses, c.Name); IsSidecar(c) {
			t.addSidecar(one)
		} else {
			t.addInit(pod, one)
		}
	}
	for i := range pod.Spec.Containers {
		t.add(pod, find(s.ContainerStatuses, pod.Spec.Containers[i].Name))
	}
	return t
}

func (t *tally) addSidecar(s *corev1.ContainerStatus) {
	switch {
	case s == nil:
		t.initPending++
	case s.State.Terminated == nil && (s.State.Running == nil || s.Started == nil || !*s.Started):
		t.sidecarPending++
	}
}

func (t *tally) addInit(pod *corev1.Pod, s *corev1.ContainerStatus) {
	end := lastEnd(s)
	switch {
	case s == nil || s.State.Running != nil || end == nil:
		t.initPending++
	case end.ExitCode != 0:
		t.initFailed++
		if end.Reason != ReasonRestartingAll && !MayRestart(pod, s.Name, end.ExitCode) {
			t.initOver++
		}
	case s.State.Terminated == nil:
		t.initPending++
	}
}

func (t *tally) add(pod *corev1.Pod, s *corev1.ContainerStatus) {
	end := lastEnd(s)
	switch {
	case s == nil:
		t.unknown++
	case s.State.Running != nil:
		t.running++
	case end == nil:
		t.waiting++
	default:
		t.stopped++
		if s.State.Terminated == nil { // between two incarnations
			return
		}
		if !MayRestart(pod, s.Name, end.ExitCode) {
			t.over++
		}
		if end.ExitCode == 0 {
			t.succeeded++
		}
	}
}

// lastEnd is how a container has ended, also between two incarnations; nil if none has.
func lastEnd(s *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	switch {
	case s == nil:
		return nil
	case s.State.Terminated != nil:
		return s.State.Terminated
	}
	return s.LastTerminationState.Terminated
}
