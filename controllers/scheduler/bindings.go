package scheduler

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// A Binder gives pods their nodes. The scheduler has up to bindLimit bindings under way at once, so that a store can commit
// them together; each succeeds or fails by itself. Errors are those of the API: not found, a conflict if the pod has a node.
type Binder interface {
	Bind(ctx context.Context, b *corev1.Binding) error
}

// ClientBinder binds through any Kubernetes API.
type ClientBinder struct{ Client kubernetes.Interface }

// Bind implements Binder.
func (c ClientBinder) Bind(ctx context.Context, b *corev1.Binding) error {
	return c.Client.CoreV1().Pods(b.Namespace).Bind(ctx, b, metav1.CreateOptions{})
}
