package scheduler

import (
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/component-helpers/storage/ephemeral"
	"k8s.io/component-helpers/storage/volume"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// limits know which drivers each node has, and how many of their volumes it takes and has, by CSINodes and VolumeAttachments.
type limits struct {
	nodes       storagelisters.CSINodeLister
	attachments storagelisters.VolumeAttachmentLister
	// version counts the changes of volumes, claims, classes, CSINodes and VolumeAttachments.
	version *atomic.Uint64

	// What was read at version seen; guarded by scheduler.mu.
	read     bool
	seen     uint64
	drivers  map[string]map[string]bool
	max      map[string]map[string]int64
	attached map[string][]plugin.CSIVolume
}

func newLimits(cfg Config) limits {
	storage := cfg.Informers.Storage().V1()
	return limits{nodes: storage.CSINodes().Lister(), attachments: storage.VolumeAttachments().Lister(), version: &atomic.Uint64{}}
}

// volumeLimits are the limits for a pod with these claims; nil if none of their drivers has one on any node, or has to be there.
func (c *claims) volumeLimits(of []*corev1.PersistentVolumeClaim) (*plugin.VolumeLimits, error) {
	var wanted []plugin.CSIVolume
	for _, claim := range of {
		if v, ok := c.csiVolume(claim); ok && !slices.Contains(wanted, v) {
			wanted = append(wanted, v)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	if err := c.readLimits(); err != nil {
		return nil, err
	}
	needed, err := c.neededDrivers(wanted)
	if err != nil {
		return nil, err
	}
	limited := false
	for _, byDriver := range c.limits.max {
		limited = limited || slices.ContainsFunc(wanted, func(v plugin.CSIVolume) bool { _, ok := byDriver[v.Driver]; return ok })
	}
	if !limited && len(needed) == 0 {
		return nil, nil
	}
	return &plugin.VolumeLimits{
		Version: c.limits.seen, Wanted: wanted, Needed: needed, Drivers: c.limits.drivers,
		Max: c.limits.max, Attached: c.limits.attached, Of: c.volumesOf,
	}, nil
}

// neededDrivers are those of the volumes whose CSIDriver keeps pods off nodes without the driver.
func (c *claims) neededDrivers(wanted []plugin.CSIVolume) (needed []string, err error) {
	for _, v := range wanted {
		driver, err := c.rooms.Drivers.Get(v.Driver)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		if err == nil && driver.Spec.PreventPodSchedulingIfMissing != nil && *driver.Spec.PreventPodSchedulingIfMissing {
			needed = append(needed, v.Driver)
		}
	}
	slices.Sort(needed)
	return slices.Compact(needed), nil
}

// readLimits reads CSINodes and VolumeAttachments, unless nothing has changed since the last time.
func (c *claims) readLimits() error {
	l := &c.limits
	version := l.version.Load() // before reading: what changes meanwhile is read again
	if l.read && version == l.seen {
		return nil
	}
	nodes, err := l.nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	attachments, err := l.attachments.List(labels.Everything())
	if err != nil {
		return err
	}
	l.drivers, l.max, l.attached = map[string]map[string]bool{}, map[string]map[string]int64{}, map[string][]plugin.CSIVolume{}
	for _, node := range nodes {
		l.drivers[node.Name] = map[string]bool{}
		for _, driver := range node.Spec.Drivers {
			l.drivers[node.Name][driver.Name] = true
			if driver.Allocatable == nil || driver.Allocatable.Count == nil {
				continue
			}
			if l.max[node.Name] == nil {
				l.max[node.Name] = map[string]int64{}
			}
			l.max[node.Name][driver.Name] = int64(*driver.Allocatable.Count)
		}
	}
	for _, a := range attachments {
		if a.Spec.Source.PersistentVolumeName == nil || l.max[a.Spec.NodeName] == nil {
			continue
		}
		if v, err := c.volumes.Get(*a.Spec.Source.PersistentVolumeName); err == nil && v.Spec.CSI != nil {
			is := plugin.CSIVolume{Driver: a.Spec.Attacher, Handle: v.Spec.CSI.VolumeHandle}
			l.attached[a.Spec.NodeName] = append(l.attached[a.Spec.NodeName], is)
		}
	}
	l.read, l.seen = true, version
	return nil
}

// volumesOf are the volumes of a placed pod. What cannot be looked up does not count, as upstream.
func (c *claims) volumesOf(pod *corev1.Pod) []plugin.CSIVolume {
	var found []plugin.CSIVolume
	for i := range pod.Spec.Volumes {
		var name string
		switch v := &pod.Spec.Volumes[i]; {
		case v.PersistentVolumeClaim != nil:
			name = v.PersistentVolumeClaim.ClaimName
		case v.Ephemeral != nil:
			name = ephemeral.VolumeClaimName(pod, v)
		default:
			continue
		}
		claim, err := c.volumeClaims.PersistentVolumeClaims(pod.Namespace).Get(name)
		if err != nil {
			continue
		}
		if v, ok := c.csiVolume(claim); ok {
			found = append(found, v)
		}
	}
	return found
}

// csiVolume is the volume of a claim; false if it is none of a CSI driver. Until there is one, it will be of the driver that makes
// the volumes of the claim's class.
func (c *claims) csiVolume(claim *corev1.PersistentVolumeClaim) (plugin.CSIVolume, bool) {
	if claim.Spec.VolumeName != "" {
		if v, err := c.volumes.Get(claim.Spec.VolumeName); err == nil {
			if v.Spec.CSI == nil {
				return plugin.CSIVolume{}, false
			}
			return plugin.CSIVolume{Driver: v.Spec.CSI.Driver, Handle: v.Spec.CSI.VolumeHandle}, true
		}
	}
	class, err := c.classes.Get(volume.GetPersistentVolumeClaimClass(claim))
	if err != nil {
		return plugin.CSIVolume{}, false
	}
	return plugin.CSIVolume{Driver: class.Provisioner, Handle: "/claim/" + claim.Namespace + "/" + claim.Name}, true
}
