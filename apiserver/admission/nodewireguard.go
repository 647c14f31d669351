package admission

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/internal/wireguardkey"
)

// judgeTunnelKey: no node tells the WireGuard key of another. Packets go to whom a key belongs, and nobody's to two nodes,
// so the other would be cut off.
func (r nodeRestriction) judgeTunnelKey(ctx context.Context, node string, a admission.Attributes) error {
	object, ok := a.GetObject().(*corev1.Node)
	if !ok {
		return nil
	}
	key := wireguardkey.Told(object.Annotations)
	if old, ok := a.GetOldObject().(*corev1.Node); key == "" || ok && wireguardkey.Told(old.Annotations) == key {
		return nil
	}
	nodes, err := r.nodes.all(ctx)
	if err != nil {
		return err
	}
	for _, other := range nodes {
		if other.Name != node && wireguardkey.Told(other.Annotations) == key {
			return fmt.Errorf("node %q is not allowed to tell the WireGuard key of node %q", node, other.Name)
		}
	}
	return nil
}
