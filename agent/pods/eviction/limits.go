package eviction

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// Files are what something has on a disk.
type Files struct{ Bytes, Inodes int64 }

func (f *Files) add(more ...Files) {
	for _, m := range more {
		f.Bytes += m.Bytes
		f.Inodes += m.Inodes
	}
}

func total(by map[string]Files) Files {
	var sum Files
	for _, f := range by {
		sum.add(f)
	}
	return sum
}

// Usage is what a pod has on the node's disks.
type Usage struct {
	// Layers are the writable layers of the containers that run, and Logs what these have written, both by name.
	Layers, Logs map[string]Files
	// Volumes are those whose files are on the disk for this pod only, by name.
	Volumes map[string]Files
	// Other is what belongs to the pod as a whole, such as its hosts file and the logs of containers that have ended.
	Other Files
}

func (u Usage) total() Files {
	sum := u.Other
	sum.add(total(u.Layers), total(u.Logs), total(u.Volumes))
	return sum
}

// limited reports whether pod has a limit that overLimit would look at.
func limited(pod *corev1.Pod) bool {
	for i := range pod.Spec.Volumes {
		if sizeLimit(&pod.Spec.Volumes[i]) != nil {
			return true
		}
	}
	_, ok := podLimit(pod)
	return ok
}

// overLimit says which limit of its own the pod exceeds, in upstream's words and order; "" if none.
func overLimit(pod *corev1.Pod, use Usage) string {
	for i := range pod.Spec.Volumes {
		v := &pod.Spec.Volumes[i]
		if limit := sizeLimit(v); limit != nil && use.Volumes[v.Name].Bytes > limit.Value() {
			return fmt.Sprintf("Usage of EmptyDir volume %q exceeds the limit %q. ", v.Name, limit.String())
		}
	}
	if limit, ok := podLimit(pod); ok && use.total().Bytes > limit.Value() {
		return fmt.Sprintf("Pod ephemeral local storage usage exceeds the total limit of containers %s. ", limit.String())
	}
	for _, c := range lasting(pod) {
		limit := c.Resources.Limits.StorageEphemeral()
		if limit.Sign() > 0 && use.Layers[c.Name].Bytes+use.Logs[c.Name].Bytes > limit.Value() {
			return fmt.Sprintf("Container %s exceeded its local ephemeral storage limit %q. ", c.Name, limit.String())
		}
	}
	return ""
}

// sizeLimit is that of an emptyDir on the disk. In memory and in huge pages the kernel enforces it.
func sizeLimit(v *corev1.Volume) *resource.Quantity {
	e := v.EmptyDir
	if e == nil || e.Medium != corev1.StorageMediumDefault || e.SizeLimit == nil || e.SizeLimit.Sign() <= 0 {
		return nil
	}
	return e.SizeLimit
}

// podLimit is the sum over the containers. One without a limit adds nothing, as with a kubelet.
func podLimit(pod *corev1.Pod) (resource.Quantity, bool) {
	limit, ok := resourcehelper.PodLimits(pod, resourcehelper.PodResourcesOptions{})[corev1.ResourceEphemeralStorage]
	return limit, ok
}

// lasting are the containers that run as long as the pod does.
func lasting(pod *corev1.Pod) []*corev1.Container {
	var out []*corev1.Container
	for i := range pod.Spec.Containers {
		out = append(out, &pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			out = append(out, c)
		}
	}
	return out
}

// systemCritical is the least priority of the classes system-cluster-critical and system-node-critical.
const systemCritical = 2_000_000_000

// critical pods are never evicted: the cluster needs them, and static ones would not be made again.
func critical(pod *corev1.Pod) bool {
	_, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return podconfig.IsStatic(pod) || mirror || pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical
}
