package nodefaults

import (
	"fmt"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

const (
	shimRounds, shimRoundsShort = 5, 2
	// shimKillTimeMax is within which shims are killed: some while they start, some in pods that run.
	shimKillTimeMax = 300 * time.Millisecond
)

// shimIsKilled: the process that holds a pod dies, or the pod's process 1, as when the kernel is out of memory. What ran in the pod is
// gone then. With the restart policy Always it starts again; a pod that never restarts fails, and its container's state says how its
// container ended, unless none had run yet: then it starts like any other.
func shimIsKilled(t *testing.T, n *node) {
	for round := range rounds(shimRounds, shimRoundsShort) {
		var names []string
		for i := range 4 {
			pod := victim(fmt.Sprintf("held-%d-%d", round, i), i)
			names = append(names, pod.Name)
			n.create(t, pod)
		}
		if round%2 == 0 { // in pods that run; else in the middle of their starts
			n.awaitReady(t, names...)
		}
		n.pause(t, shimKillTimeMax)
		kind := []string{"setpoint-shim", "setpoint-pause"}[round/2%2]
		hit := killHolders(kind, shimOf(t, bystanderName))
		t.Logf("killed %s of %v", kind, hit)
		for i, name := range names {
			n.awaitPod(t, name, func(pod *corev1.Pod) string { return isRight(pod, i >= 2, hit[name]) })
		}
		n.tell(t)
		n.deletePods(t)
	}
}

// shimHangs: the process that holds a pod is stopped, and answers nobody. An agent that is started then starts, other pods come and go
// under it, and the pod is not restarted when its shim goes on.
func shimHangs(t *testing.T, n *node) {
	n.create(t, newPod("hangs"))
	n.awaitReady(t, "hangs")
	shim := shimOf(t, "hangs")
	check(t, unix.Kill(shim, unix.SIGSTOP))
	n.killAgent(t)
	n.startAgent(t)
	n.othersComeAndGo(t, "beside")
	check(t, unix.Kill(shim, unix.SIGCONT))
	n.mustExec(t, "hangs")
	n.notRestarted(t, "hangs")
}

// victim is a pod that shares processes, or not, and that restarts, or not.
func victim(name string, i int) *corev1.Pod {
	pod, share := newPod(name), i%2 == 1
	pod.Spec.ShareProcessNamespace = &share
	if i >= 2 {
		pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	}
	return pod
}

// isRight: a pod runs in one process, another one than was hit, or has failed if it may, and says why.
func isRight(pod *corev1.Pod, mayFail bool, hit int) string {
	if mayFail && pod.Status.Phase == corev1.PodFailed {
		return saysWhy(pod)
	}
	running := workloads()[pod.Name]
	if len(running) != 1 || running[0] == hit {
		return fmt.Sprintf("its processes are %d, hit was %d", running, hit)
	}
	return isReady(pod)
}

func saysWhy(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		if ended := status.State.Terminated; ended == nil || ended.ExitCode == 0 || ended.Reason == "" {
			return fmt.Sprintf("failed, and nobody knows why: %+v", status.State)
		}
	}
	return ""
}

// killHolders kills all processes of this name but those of the pod that spared holds, and returns which workloads they held.
func killHolders(name string, spared int) (hit map[string]int) {
	hit = map[string]int{}
	for pid, args := range processes() {
		if args[0] != name || pid == spared || parentOf(pid) == spared {
			continue
		}
		for pod, running := range workloads() {
			for _, workload := range running {
				if shim := holderOf(workload); shim == pid || shim == parentOf(pid) {
					hit[pod] = workload
				}
			}
		}
		_ = unix.Kill(pid, unix.SIGKILL) // it may have ended
	}
	return hit
}
