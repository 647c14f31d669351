package admission

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// references are the other objects that a pod reads.
type references struct {
	secrets    []secretReference
	configMaps bool
}

// secretReference is a secret and, for messages, the place that names it.
type secretReference struct {
	name string
	// from is empty where no account limits what may be read.
	from string
	// debug: named by an ephemeral container.
	debug bool
}

func referencesOf(pod *corev1.Pod) references {
	var r references
	for i, s := range pod.Spec.ImagePullSecrets {
		r.add(s.Name, fmt.Sprintf("imagePullSecrets[%d].name=%q", i, s.Name))
	}
	for _, v := range pod.Spec.Volumes {
		r.addVolume(v)
	}
	for _, c := range pod.Spec.InitContainers {
		r.addContainer("init container", c, false)
	}
	for _, c := range pod.Spec.Containers {
		r.addContainer("container", c, false)
	}
	for _, c := range pod.Spec.EphemeralContainers {
		r.addContainer("ephemeral container", corev1.Container(c.EphemeralContainerCommon), true)
	}
	return r
}

func (r *references) add(secret, from string) {
	r.secrets = append(r.secrets, secretReference{name: secret, from: from})
}

func (r *references) addVolume(v corev1.Volume) {
	if v.Secret != nil {
		r.add(v.Secret.SecretName, fmt.Sprintf("volume with secret.secretName=%q", v.Secret.SecretName))
	}
	for _, secret := range unlimitedSecrets(v) {
		r.add(secret, "")
	}
	r.configMaps = r.configMaps || v.ConfigMap != nil
	for _, p := range projections(v) {
		r.configMaps = r.configMaps || p.ConfigMap != nil
	}
}

// unlimitedSecrets are the secrets that a projection shows or that a volume's driver
// is handed. As upstream, no account's list limits them.
func unlimitedSecrets(v corev1.Volume) []string {
	var names []string
	for _, p := range projections(v) {
		if p.Secret != nil {
			names = append(names, p.Secret.Name)
		}
	}
	if ref := driverSecret(v); ref != nil {
		names = append(names, ref.Name)
	}
	if v.AzureFile != nil {
		names = append(names, v.AzureFile.SecretName)
	}
	return names
}

func driverSecret(v corev1.Volume) *corev1.LocalObjectReference {
	switch {
	case v.CephFS != nil:
		return v.CephFS.SecretRef
	case v.Cinder != nil:
		return v.Cinder.SecretRef
	case v.FlexVolume != nil:
		return v.FlexVolume.SecretRef
	case v.RBD != nil:
		return v.RBD.SecretRef
	case v.ScaleIO != nil:
		return v.ScaleIO.SecretRef
	case v.ISCSI != nil:
		return v.ISCSI.SecretRef
	case v.StorageOS != nil:
		return v.StorageOS.SecretRef
	case v.CSI != nil:
		return v.CSI.NodePublishSecretRef
	default:
		return nil
	}
}

func projections(v corev1.Volume) []corev1.VolumeProjection {
	if v.Projected == nil {
		return nil
	}
	return v.Projected.Sources
}

func (r *references) addContainer(kind string, c corev1.Container, debug bool) {
	for _, e := range c.EnvFrom {
		r.configMaps = r.configMaps || e.ConfigMapRef != nil
		if e.SecretRef != nil {
			r.secrets = append(r.secrets, secretReference{e.SecretRef.Name,
				fmt.Sprintf("%s %s with envFrom referencing secret.secretName=%q", kind, c.Name, e.SecretRef.Name), debug})
		}
	}
	for _, e := range c.Env {
		if e.ValueFrom == nil {
			continue
		}
		r.configMaps = r.configMaps || e.ValueFrom.ConfigMapKeyRef != nil
		if ref := e.ValueFrom.SecretKeyRef; ref != nil {
			r.secrets = append(r.secrets, secretReference{ref.Name,
				fmt.Sprintf("%s %s with envVar %s referencing secret.secretName=%q", kind, c.Name, e.Name, ref.Name), debug})
		}
	}
}

// limitSecrets refuses a pod that reads secrets its account does not list. Of a pod
// that runs already, only its ephemeral containers are new.
func limitSecrets(account *corev1.ServiceAccount, pod *corev1.Pod, onlyDebug bool) error {
	mountable, pull := map[string]bool{}, map[string]bool{}
	for _, s := range account.Secrets {
		mountable[s.Name] = true
	}
	for _, s := range account.ImagePullSecrets {
		pull[s.Name] = true
	}
	pulls := len(pod.Spec.ImagePullSecrets) // referencesOf names them first
	for i, ref := range referencesOf(pod).secrets {
		switch {
		case ref.from == "", onlyDebug && !ref.debug:
		case i < pulls && !pull[ref.name]:
			return fmt.Errorf(
				"%s is not allowed because service account %s does not reference that imagePullSecret",
				ref.from,
				account.Name,
			)
		case i >= pulls && !mountable[ref.name]:
			return fmt.Errorf("%s is not allowed because service account %s does not reference that secret", ref.from, account.Name)
		}
	}
	return nil
}
