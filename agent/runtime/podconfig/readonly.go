package podconfig

import (
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/internal/podfields"
)

// RecurseReadOnly makes what is mounted below c's read-only volumes read-only too, where c says so. mounts begin with those
// of c's volumes, in their order. A runtime that cannot do it is no error if it only should be done if possible.
func RecurseReadOnly(c *corev1.Container, mounts []*runtimeapi.Mount, node podfields.Node) error {
	for i := range c.VolumeMounts {
		mode := c.VolumeMounts[i].RecursiveReadOnly
		switch {
		case mode == nil || *mode == corev1.RecursiveReadOnlyDisabled:
		case node.RecursiveReadOnly:
			mounts[i].RecursiveReadOnly = mounts[i].Readonly
		case *mode == corev1.RecursiveReadOnlyEnabled:
			return &ConfigError{Message: "volumeMount " + c.VolumeMounts[i].Name + ": the runtime has no recursive read-only mounts"}
		}
	}
	return nil
}
