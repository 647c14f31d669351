package status

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Listener hears of the node's pods, before the API does. Its methods return at once.
type Listener interface {
	// PodChanged says what was found out of the pod; nil: its object is new, another or gone.
	PodChanged(uid types.UID, now *corev1.PodStatus)
	// PodGone: nothing of the pod is left.
	PodGone(uid types.UID)
}

// Nobody listens.
type Nobody struct{}

func (Nobody) PodChanged(types.UID, *corev1.PodStatus) {}
func (Nobody) PodGone(types.UID)                       {}
