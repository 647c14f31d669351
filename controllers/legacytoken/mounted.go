package legacytoken

import (
	corev1 "k8s.io/api/core/v1"
)

// secretsOf calls see with the name of each Secret that a pod refers to; some names may be empty.
func secretsOf(pod *corev1.Pod, see func(name string)) {
	for _, ref := range pod.Spec.ImagePullSecrets {
		see(ref.Name)
	}
	for i := range pod.Spec.InitContainers {
		secretsOfContainer(pod.Spec.InitContainers[i].EnvFrom, pod.Spec.InitContainers[i].Env, see)
	}
	for i := range pod.Spec.Containers {
		secretsOfContainer(pod.Spec.Containers[i].EnvFrom, pod.Spec.Containers[i].Env, see)
	}
	for i := range pod.Spec.EphemeralContainers {
		secretsOfContainer(pod.Spec.EphemeralContainers[i].EnvFrom, pod.Spec.EphemeralContainers[i].Env, see)
	}
	for i := range pod.Spec.Volumes {
		secretsOfVolume(&pod.Spec.Volumes[i].VolumeSource, see)
	}
}

func secretsOfContainer(from []corev1.EnvFromSource, env []corev1.EnvVar, see func(name string)) {
	for _, source := range from {
		if source.SecretRef != nil {
			see(source.SecretRef.Name)
		}
	}
	for _, variable := range env {
		if variable.ValueFrom != nil && variable.ValueFrom.SecretKeyRef != nil {
			see(variable.ValueFrom.SecretKeyRef.Name)
		}
	}
}

func secretsOfVolume(source *corev1.VolumeSource, see func(name string)) {
	ref := func(r *corev1.LocalObjectReference) {
		if r != nil {
			see(r.Name)
		}
	}
	switch {
	case source.Secret != nil:
		see(source.Secret.SecretName)
	case source.Projected != nil:
		for _, projection := range source.Projected.Sources {
			if projection.Secret != nil {
				see(projection.Secret.Name)
			}
		}
	case source.AzureFile != nil:
		see(source.AzureFile.SecretName)
	case source.CephFS != nil:
		ref(source.CephFS.SecretRef)
	case source.Cinder != nil:
		ref(source.Cinder.SecretRef)
	case source.FlexVolume != nil:
		ref(source.FlexVolume.SecretRef)
	case source.RBD != nil:
		ref(source.RBD.SecretRef)
	case source.ScaleIO != nil:
		ref(source.ScaleIO.SecretRef)
	case source.ISCSI != nil:
		ref(source.ISCSI.SecretRef)
	case source.StorageOS != nil:
		ref(source.StorageOS.SecretRef)
	case source.CSI != nil:
		ref(source.CSI.NodePublishSecretRef)
	}
}
