package status

import corev1 "k8s.io/api/core/v1"

// tally counts the states that decide a phase.
type tally struct{ unknown, running, stopped, succeeded, waiting, initPending, initFailed, sidecarPending int }

// phase is upstream's: what the containers' states add up to.
func phase(pod *corev1.Pod, s *corev1.PodStatus, ended bool) corev1.PodPhase {
	t := count(pod, s)
	if t.initFailed > 0 && pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
		return corev1.PodFailed
	}
	if ended {
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
		return stoppedPhase(pod, t)
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
func stoppedPhase(pod *corev1.Pod, t tally) corev1.PodPhase {
	switch {
	case pod.Spec.RestartPolicy == corev1.RestartPolicyAlways:
		return corev1.PodRunning
	case t.stopped == t.succeeded:
		return corev1.PodSucceeded
	case pod.Spec.RestartPolicy == corev1.RestartPolicyNever:
		return corev1.PodFailed
	default:
		return corev1.PodRunning
	}
}

func count(pod *corev1.Pod, s *corev1.PodStatus) tally {
	var t tally
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		t.addInit(find(s.InitContainerStatuses, c.Name), IsSidecar(c))
	}
	for i := range pod.Spec.Containers {
		t.add(find(s.ContainerStatuses, pod.Spec.Containers[i].Name))
	}
	return t
}

func (t *tally) addInit(s *corev1.ContainerStatus, sidecar bool) {
	switch {
	case s == nil:
		t.initPending++
	case sidecar:
		if s.State.Terminated == nil && (s.State.Running == nil || s.Started == nil || !*s.Started) {
			t.sidecarPending++
		}
	case s.State.Running != nil:
		t.initPending++
	case s.State.Terminated != nil:
		if s.State.Terminated.ExitCode != 0 {
			t.initFailed++
		}
	case s.LastTerminationState.Terminated != nil && s.LastTerminationState.Terminated.ExitCode != 0:
		t.initFailed++
	default:
		t.initPending++
	}
}

func (t *tally) add(s *corev1.ContainerStatus) {
	switch {
	case s == nil:
		t.unknown++
	case s.State.Running != nil:
		t.running++
	case s.State.Terminated != nil:
		t.stopped++
		if s.State.Terminated.ExitCode == 0 {
			t.succeeded++
		}
	case s.LastTerminationState.Terminated != nil:
		t.stopped++ // between two incarnations
	default:
		t.waiting++
	}
}
