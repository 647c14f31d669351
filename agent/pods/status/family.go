package status

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	netutils "k8s.io/utils/net"
)

// FamilyMismatch is upstream's warning that the node's first address has another version of IP than the one that was told of the pod
// last, so that what was set up by that one may not work; it is "" where they agree.
func FamilyMismatch(pod *corev1.Pod, hostIPs []string) string {
	before := pod.Status.HostIP
	if before == "" || len(hostIPs) == 0 || netutils.IPFamilyOfString(before) == netutils.IPFamilyOfString(hostIPs[0]) {
		return ""
	}
	return fmt.Sprintf("Kubelet detected an IPv%s node IP (%s), but the cloud provider selected an IPv%s node IP (%s); "+
		"pass an explicit `--node-ip` to kubelet to fix this.",
		netutils.IPFamilyOfString(before), before, netutils.IPFamilyOfString(hostIPs[0]), hostIPs[0])
}
