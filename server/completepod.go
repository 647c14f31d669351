package server

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds/core"
)

// CompletePod sets the defaults of a pod that no request carries, and says what is wrong with it.
func CompletePod(pod *corev1.Pod) error { return core.CompletePod(pod) }
