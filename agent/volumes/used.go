package volumes

import corev1 "k8s.io/api/core/v1"

// Used are the names of the volumes that a container has, also those of whose files it takes variables.
func Used(c *corev1.Container) (names []string) {
	for _, m := range c.VolumeMounts {
		names = append(names, m.Name)
	}
	for _, d := range c.VolumeDevices {
		names = append(names, d.Name)
	}
	for _, e := range c.Env {
		if e.ValueFrom != nil && e.ValueFrom.FileKeyRef != nil {
			names = append(names, e.ValueFrom.FileKeyRef.VolumeName)
		}
	}
	return names
}

// usedBy are the names of the volumes that containers of a pod have.
func usedBy(pod *corev1.Pod) map[string]bool {
	used := map[string]bool{}
	add := func(c *corev1.Container) {
		for _, name := range Used(c) {
			used[name] = true
		}
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			add(&list[i])
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		c := corev1.Container(pod.Spec.EphemeralContainers[i].EphemeralContainerCommon)
		add(&c)
	}
	return used
}
