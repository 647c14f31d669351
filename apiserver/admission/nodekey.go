package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// judgeNodeKey: no node says whose its name is. A machine with a certificate of a former
// life of the name could take it back.
func judgeNodeKey(node string, object, old *corev1.Node) error {
	if object.Annotations[trust.NodeKeyAnnotation] != old.Annotations[trust.NodeKeyAnnotation] {
		return fmt.Errorf("node %q is not allowed to modify the annotation %s", node, trust.NodeKeyAnnotation)
	}
	return nil
}

// judgeNewNodeKey: a node that registers may say that its name belongs to the key by which it asks, and to no other.
func judgeNewNodeKey(ctx context.Context, node string, object *corev1.Node) error {
	if said := object.Annotations[trust.NodeKeyAnnotation]; said != "" && said == auth.KeyShown(ctx, trust.NodeUser(node)) {
		return nil
	}
	return judgeNodeKey(node, object, &corev1.Node{})
}
