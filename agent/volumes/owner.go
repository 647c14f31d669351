package volumes

import (
	corev1 "k8s.io/api/core/v1"
)

// privateMode is that of files which one user or group reads.
const privateMode = 0o600

// privateFile is readable by the user of the pod's containers, if all have the same, or by the pod's fsGroup.
// Without these it has the volume's mode: the user may be in the image, which is not known here.
func privateFile(pod *corev1.Pod, data []byte, mode *int32) file {
	f := file{data: data, mode: fileMode(nil, mode), owner: commonUser(pod)}
	if f.owner != nil || fsGroup(pod) != nil {
		f.mode = privateMode
	}
	return f
}

// commonUser is the user of all containers, or nil. Ephemeral containers do not count, since they come later.
func commonUser(pod *corev1.Pod) *int64 {
	var common *int64
	for _, containers := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range containers {
			user := runAsUser(pod, &containers[i])
			if user == nil || common != nil && *common != *user {
				return nil
			}
			common = user
		}
	}
	return common
}

func runAsUser(pod *corev1.Pod, c *corev1.Container) *int64 {
	if sc := c.SecurityContext; sc != nil && sc.RunAsUser != nil {
		return sc.RunAsUser
	}
	if sc := pod.Spec.SecurityContext; sc != nil {
		return sc.RunAsUser
	}
	return nil
}
