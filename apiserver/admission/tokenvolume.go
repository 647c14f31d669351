package admission

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/storage/names"
)

const (
	// tokenMountPath is where every client library looks for its credentials.
	tokenMountPath = "/var/run/secrets/kubernetes.io/serviceaccount"
	tokenVolume    = "kube-api-access-"
	// tokenSeconds is a bit more than an hour: issuers that know pods of this kind
	// tell it from a token that a user asked for.
	tokenSeconds     = 3607
	rootCAConfigMap  = "kube-root-ca.crt"
	projectedDefault = int32(0o644)
)

// wantsToken: the pod decides, else its account, else yes.
func wantsToken(account *corev1.ServiceAccount, pod *corev1.Pod) bool {
	switch {
	case pod.Spec.AutomountServiceAccountToken != nil:
		return *pod.Spec.AutomountServiceAccountToken
	case account.AutomountServiceAccountToken != nil:
		return *account.AutomountServiceAccountToken
	default:
		return true
	}
}

// mountToken gives every container a token for the API, unless it has something else
// at that place.
func mountToken(pod *corev1.Pod) {
	name, made := tokenVolumeName(pod), false
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			if slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == tokenMountPath }) {
				continue
			}
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: name, ReadOnly: true, MountPath: tokenMountPath})
			made = true
		}
	}
	has := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if made && !has {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: tokenSource()})
	}
}

// tokenVolumeName is that of a volume the pod brought along, as copies of pods do,
// or a new one.
func tokenVolumeName(pod *corev1.Pod) string {
	for _, v := range pod.Spec.Volumes {
		if strings.HasPrefix(v.Name, tokenVolume) {
			return v.Name
		}
	}
	return names.SimpleNameGenerator.GenerateName(tokenVolume)
}

func tokenSource() corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		DefaultMode: new(projectedDefault),
		Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(tokenSeconds))}},
			{ConfigMap: &corev1.ConfigMapProjection{
				LocalObjectReference: corev1.LocalObjectReference{Name: rootCAConfigMap},
				Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
			}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{
				Path:     "namespace",
				FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"},
			}}}},
		},
	}}
}
