package userns

import (
	"errors"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/base/hugepages"
)

// Mode says which pods have a user namespace beside those that ask for one by hostUsers: false. One with hostUsers: true never has.
type Mode string

const (
	// Asked: no others.
	Asked Mode = "asked"
	// Auto: those whose spec shows nothing that could need the host's users.
	Auto Mode = "auto"
	// All: all that can.
	All Mode = "all"
)

var errMode = errors.New("--user-namespaces: want asked, auto or all")

// Validate says what is wrong with the mode.
func (m Mode) Validate() error {
	switch m {
	case Asked, Auto, All:
		return nil
	}
	return errMode
}

// Wants tells whether the pod has a user namespace. Where the node has none, only a pod that asks gets to know.
func (m Mode) Wants(pod *corev1.Pod) bool {
	if asked := pod.Spec.HostUsers; asked != nil {
		return !*asked
	}
	switch m {
	case All:
		return !sharesWithHost(&pod.Spec) && !anyContainer(&pod.Spec, isPrivileged)
	case Auto:
		return !sharesWithHost(&pod.Spec) && !anyContainer(&pod.Spec, isPowerful) && hasOwnVolumes(&pod.Spec) && hasKnownUsers(&pod.Spec)
	default:
		return false
	}
}

func sharesWithHost(spec *corev1.PodSpec) bool {
	return spec.HostNetwork || spec.HostPID || spec.HostIPC
}

func anyContainer(spec *corev1.PodSpec, is func(*corev1.Container) bool) bool {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if is(&list[i]) {
				return true
			}
		}
	}
	return false
}

func isPrivileged(c *corev1.Container) bool {
	return c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
}

// isPowerful: capabilities that a container adds may be about what belongs to the host, as its clock, and mean nothing in a user namespace.
func isPowerful(c *corev1.Container) bool {
	added := c.SecurityContext != nil && c.SecurityContext.Capabilities != nil && len(c.SecurityContext.Capabilities.Add) > 0
	return added || isPrivileged(c) || len(c.VolumeDevices) > 0 || hasDevices(c)
}

// hasDevices: their nodes and files belong to users of the host.
func hasDevices(c *corev1.Container) bool {
	for name := range c.Resources.Limits {
		if strings.Contains(string(name), "/") {
			return true
		}
	}
	return len(c.Resources.Claims) > 0
}

// hasOwnVolumes: all volumes are made for the pod on the node. Others may lie on file systems that cannot be mounted with other users, as
// huge pages cannot before Linux 6.9.
func hasOwnVolumes(spec *corev1.PodSpec) bool {
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		if v.EmptyDir == nil && v.ConfigMap == nil && v.Secret == nil && v.DownwardAPI == nil && v.Projected == nil && v.Image == nil ||
			v.EmptyDir != nil && hugepages.IsMedium(v.EmptyDir.Medium) {
			return false
		}
	}
	return true
}

// hasKnownUsers: all users and groups that the spec names are among those that every user namespace has.
func hasKnownUsers(spec *corev1.PodSpec) bool {
	known := func(ids ...*int64) bool {
		for _, id := range ids {
			if id != nil && *id >= UsersUnit {
				return false
			}
		}
		return true
	}
	if pod := spec.SecurityContext; pod != nil {
		if !known(pod.RunAsUser, pod.RunAsGroup, pod.FSGroup) {
			return false
		}
		for i := range pod.SupplementalGroups {
			if !known(&pod.SupplementalGroups[i]) {
				return false
			}
		}
	}
	return !anyContainer(spec, func(c *corev1.Container) bool {
		return c.SecurityContext != nil && !known(c.SecurityContext.RunAsUser, c.SecurityContext.RunAsGroup)
	})
}
