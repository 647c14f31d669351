package podspec

import (
	corev1 "k8s.io/api/core/v1"
)

// dropDisabled clears the fields of features that are switched off in Kubernetes 1.37, as upstream does: nobody acts on
// them, and a later version may give them another meaning. It is part of the defaults, so that pods and templates of all
// kinds agree, whether they are created, updated or patched. stopSignal of a container (ContainerStopSignals) stays: nodes
// honour it.
func dropDisabled(spec *corev1.PodSpec) {
	spec.SchedulingGroup = nil    // GenericWorkload
	spec.EvictionResponders = nil // EvictionRequestAPI
	for i := range spec.Volumes {
		dropFromVolume(&spec.Volumes[i].VolumeSource)
	}
	visitContainers(spec, dropFromContainer)
}

// visitContainers calls f for each container of any kind.
func visitContainers(spec *corev1.PodSpec, f func(*corev1.Container)) {
	for i := range spec.InitContainers {
		f(&spec.InitContainers[i])
	}
	for i := range spec.Containers {
		f(&spec.Containers[i])
	}
	for i := range spec.EphemeralContainers {
		// The common part has the fields of a container in the same order; Go converts it.
		f((*corev1.Container)(&spec.EphemeralContainers[i].EphemeralContainerCommon))
	}
}

func dropFromContainer(c *corev1.Container) {
	for i := range c.VolumeMounts {
		c.VolumeMounts[i].BindMountOptions = nil // VolumeBindMountOptions
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil && probe.GRPC != nil {
			probe.GRPC.Mode = nil // GRPCContainerProbeTLS
		}
		if probe != nil && probe.HTTPGet != nil {
			probe.HTTPGet.Protocol = nil // H2CContainerProbe
		}
	}
	if c.Lifecycle == nil {
		return
	}
	for _, hook := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if hook != nil && hook.HTTPGet != nil {
			hook.HTTPGet.Protocol = nil
		}
	}
}

// dropFromVolume: modes of an emptyDir (EmptyDirVolumeMode), and owners of files (AtomicWriteVolumeUserFields).
func dropFromVolume(v *corev1.VolumeSource) {
	switch {
	case v.EmptyDir != nil:
		v.EmptyDir.Mode = nil
	case v.Secret != nil:
		v.Secret.DefaultUser = nil
		dropUsers(v.Secret.Items)
	case v.ConfigMap != nil:
		v.ConfigMap.DefaultUser = nil
		dropUsers(v.ConfigMap.Items)
	case v.DownwardAPI != nil:
		v.DownwardAPI.DefaultUser = nil
		dropDownwardUsers(v.DownwardAPI.Items)
	case v.Projected != nil:
		v.Projected.DefaultUser = nil
		for i := range v.Projected.Sources {
			dropFromProjection(&v.Projected.Sources[i])
		}
	}
}

func dropFromProjection(p *corev1.VolumeProjection) {
	switch {
	case p.Secret != nil:
		dropUsers(p.Secret.Items)
	case p.ConfigMap != nil:
		dropUsers(p.ConfigMap.Items)
	case p.DownwardAPI != nil:
		dropDownwardUsers(p.DownwardAPI.Items)
	case p.ServiceAccountToken != nil:
		p.ServiceAccountToken.User = nil
	case p.ClusterTrustBundle != nil:
		p.ClusterTrustBundle.User = nil
	case p.PodCertificate != nil:
		p.PodCertificate.User = nil
	}
}

func dropUsers(items []corev1.KeyToPath) {
	for i := range items {
		items[i].User = nil
	}
}

func dropDownwardUsers(files []corev1.DownwardAPIVolumeFile) {
	for i := range files {
		files[i].User = nil
	}
}
