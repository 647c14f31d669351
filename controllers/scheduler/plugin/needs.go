package plugin

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Needs is what the claims of a pod require of a node, looked up when the pod is tried. The zero value is that of a pod
// without claims.
type Needs struct {
	// Volumes are the PersistentVolumes that the pod's claims are bound to.
	Volumes []*corev1.PersistentVolume
	// VolumeGone tells that a claim is bound to a PersistentVolume that does not exist.
	VolumeGone bool
	// Late are the claims that get their volumes only when the pod has a node, the smallest first.
	Late []LateClaim
	// Exclusive are the names of the claims that one pod only may use.
	Exclusive []string
	// Limits are those of the drivers of the pod's volumes; nil if there are none.
	Limits *VolumeLimits
	// Devices are the pod's ResourceClaims.
	Devices []*resourcev1.ResourceClaim
	// Stuck are those of them whose devices will not become ready, or have taken too long.
	Stuck []*resourcev1.ResourceClaim
	// Extended says which claim the pod's extended resources need on a node, and which of its requests serve which containers; a
	// nil claim needs none. It is nil if devices satisfy none of them.
	Extended func(*corev1.Node) (*resourcev1.ResourceClaim, []corev1.ContainerExtendedResourceRequest, error)
	// ByDevices tells whether devices satisfy an extended resource on nodes that do not count it; nil: none.
	ByDevices func(corev1.ResourceName) bool
	// Stale is the claim of an earlier attempt for the extended resources, which has to go first; nil if there is none.
	Stale *resourcev1.ResourceClaim
	// Allocate says what devices the claims without any would get on a node: one result each, in their order, and one for that of
	// Extended, or why there are none. It is nil if all have some.
	Allocate func(*corev1.Node) ([]resourcev1.AllocationResult, error)
	// DevicesVersion names what Allocate chooses from.
	DevicesVersion string
}

// Key names the needs: pods with equal keys have equal needs. It is empty for the zero value.
func (n *Needs) Key() string {
	var key strings.Builder
	for _, v := range n.Volumes {
		fmt.Fprintf(&key, "volume %s@%s\n", v.Name, v.ResourceVersion)
	}
	for _, d := range n.Devices {
		fmt.Fprintf(&key, "devices %s@%s\n", d.Name, d.ResourceVersion)
	}
	for _, d := range n.Stuck {
		fmt.Fprintf(&key, "stuck %s\n", d.Name)
	}
	if n.Stale != nil {
		fmt.Fprintf(&key, "stale %s@%s\n", n.Stale.Name, n.Stale.ResourceVersion)
	}
	if n.Allocate != nil {
		fmt.Fprintf(&key, "free devices %s\n", n.DevicesVersion)
	}
	for i := range n.Late {
		key.WriteString(n.Late[i].key())
	}
	for _, name := range n.Exclusive {
		fmt.Fprintf(&key, "exclusive %s\n", name)
	}
	if n.Limits != nil {
		fmt.Fprintf(&key, "limits %d %v\n", n.Limits.Version, n.Limits.Wanted)
	}
	if n.VolumeGone {
		key.WriteString("gone\n")
	}
	return key.String()
}
