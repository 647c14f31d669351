package admission

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

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
