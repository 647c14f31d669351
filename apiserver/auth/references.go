package auth

import (
	corev1 "k8s.io/api/core/v1"
)

const (
	secretResource    = "secrets"
	configMapResource = "configmaps"
	claimResource     = "persistentvolumeclaims"
	accountResource   = "serviceaccounts"
	requestResource   = "resourceclaims"
)

// referencesOf is the set of objects that a node must read to run a pod.
func referencesOf(pod *corev1.Pod) map[reference]struct{} {
	set := map[reference]struct{}{}
	add := func(resource, name string) {
		if name != "" {
			set[reference{resource, pod.Namespace, name}] = struct{}{}
		}
	}
	add(accountResource, pod.Spec.ServiceAccountName)
	for _, s := range pod.Spec.ImagePullSecrets {
		add(secretResource, s.Name)
	}
	for i := range pod.Spec.InitContainers {
		addEnvironment(add, pod.Spec.InitContainers[i].Env, pod.Spec.InitContainers[i].EnvFrom)
	}
	for i := range pod.Spec.Containers {
		addEnvironment(add, pod.Spec.Containers[i].Env, pod.Spec.Containers[i].EnvFrom)
	}
	for i := range pod.Spec.EphemeralContainers {
		addEnvironment(add, pod.Spec.EphemeralContainers[i].Env, pod.Spec.EphemeralContainers[i].EnvFrom)
	}
	for i := range pod.Spec.Volumes {
		addVolume(add, pod, &pod.Spec.Volumes[i])
	}
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimName != nil {
			add(requestResource, *c.ResourceClaimName)
		}
	}
	for _, c := range pod.Status.ResourceClaimStatuses {
		if c.ResourceClaimName != nil {
			add(requestResource, *c.ResourceClaimName)
		}
	}
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil {
		add(requestResource, extended.ResourceClaimName)
	}
	return set
}

func addEnvironment(add func(resource, name string), env []corev1.EnvVar, from []corev1.EnvFromSource) {
	for i := range env {
		if v := env[i].ValueFrom; v != nil {
			if v.SecretKeyRef != nil {
				add(secretResource, v.SecretKeyRef.Name)
			}
			if v.ConfigMapKeyRef != nil {
				add(configMapResource, v.ConfigMapKeyRef.Name)
			}
		}
	}
	for i := range from {
		if from[i].SecretRef != nil {
			add(secretResource, from[i].SecretRef.Name)
		}
		if from[i].ConfigMapRef != nil {
			add(configMapResource, from[i].ConfigMapRef.Name)
		}
	}
}

func addVolume(add func(resource, name string), pod *corev1.Pod, v *corev1.Volume) {
	switch {
	case v.Secret != nil:
		add(secretResource, v.Secret.SecretName)
	case v.ConfigMap != nil:
		add(configMapResource, v.ConfigMap.Name)
	case v.PersistentVolumeClaim != nil:
		add(claimResource, v.PersistentVolumeClaim.ClaimName)
	case v.Ephemeral != nil:
		add(claimResource, pod.Name+"-"+v.Name)
	case v.Projected != nil:
		for _, s := range v.Projected.Sources {
			if s.Secret != nil {
				add(secretResource, s.Secret.Name)
			}
			if s.ConfigMap != nil {
				add(configMapResource, s.ConfigMap.Name)
			}
		}
	default:
		addCredentials(add, v)
	}
}

// addCredentials are the secrets by which storage is mounted.
func addCredentials(add func(resource, name string), v *corev1.Volume) {
	var ref *corev1.LocalObjectReference
	switch {
	case v.CSI != nil:
		ref = v.CSI.NodePublishSecretRef
	case v.ISCSI != nil:
		ref = v.ISCSI.SecretRef
	case v.RBD != nil:
		ref = v.RBD.SecretRef
	case v.CephFS != nil:
		ref = v.CephFS.SecretRef
	case v.FlexVolume != nil:
		ref = v.FlexVolume.SecretRef
	case v.ScaleIO != nil:
		ref = v.ScaleIO.SecretRef
	case v.StorageOS != nil:
		ref = v.StorageOS.SecretRef
	case v.AzureFile != nil:
		add(secretResource, v.AzureFile.SecretName)
	}
	if ref != nil {
		add(secretResource, ref.Name)
	}
}
