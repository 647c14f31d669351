package nodefaults

import (
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	killRounds, killRoundsShort = 6, 2
	killPods                    = 4
	// killTimeMax is within which random moments lie: a pod has started and ended by then on a quiet machine.
	killTimeMax = 500 * time.Millisecond
)

// agentIsKilled: the agent dies while pods start, and again while they end, and a new one takes over. All pods run in the end, none of
// them twice at any time, and all are gone once they are deleted. What runs is not restarted.
func agentIsKilled(t *testing.T, n *node) {
	for round := range rounds(killRounds, killRoundsShort) {
		var names []string
		for i := range killPods {
			pod := killPod(fmt.Sprintf("killed-%d-%d", round, i), i)
			names = append(names, pod.Name)
			n.create(t, pod)
		}
		if disk := withDisk(fmt.Sprintf("killed-%d-disk", round)); hasLoops() {
			names = append(names, disk.Name)
			n.create(t, disk)
		}
		n.pause(t, killTimeMax)
		n.killAgent(t)
		n.startAgent(t)
		n.awaitReady(t, names...)
		n.delete(t, names...)
		n.pause(t, killTimeMax)
		n.killAgent(t)
		n.startAgent(t)
		n.awaitGone(t)
	}
}

// killPod has, one after the other, what makes pods differ below: nothing, a pause process, users, the host's network.
func killPod(name string, i int) *corev1.Pod {
	pod, yes, no := newPod(name), true, false
	switch i % 4 {
	case 1:
		pod.Spec.ShareProcessNamespace = &yes
	case 2:
		pod.Spec.HostUsers = &no
	case 3:
		pod.Spec.HostNetwork = true
	}
	return pod
}

// withDisk is a pod with a block device of its own, which is a loop device of the node's and goes with the pod.
func withDisk(name string) *corev1.Pod {
	pod, class, block := newPod(name), "setpoint-local", corev1.PersistentVolumeBlock
	pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: "disk", VolumeSource: corev1.VolumeSource{
		Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
			Spec: corev1.PersistentVolumeClaimSpec{
				StorageClassName: &class, VolumeMode: &block, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")}},
			}}}}})
	pod.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "disk", DevicePath: "/dev/disk"}}
	return pod
}

// hasLoops tells whether the machine has loop devices.
func hasLoops() bool {
	_, err := os.Stat("/dev/loop-control")
	return err == nil
}

// pause is a random time, to be somewhere in the middle of what happens.
func (n *node) pause(t *testing.T, most time.Duration) {
	select {
	case <-time.After(time.Duration(n.random.Int64N(int64(most)))):
	case <-t.Context().Done():
	}
}
