package auth

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

var nodesResource = corev1.SchemeGroupVersion.WithResource("nodes")

// ErrNodeKey says that a name belongs to another machine now.
var ErrNodeKey = errors.New("another machine has joined under this name: reset this one, and join with a new token under another name")

// NodeKeys says whose the names of nodes are.
type NodeKeys struct{ store *storage.Store }

// NewNodeKeys reads the Nodes in the store.
func NewNodeKeys(store *storage.Store) *NodeKeys { return &NodeKeys{store} }

// Judge fails with ErrNodeKey if a certificate of a node is shown whose key is not that which joined under the name
// (trust.NodeKeyAnnotation). A Node without a key there registered in another way, as stock kubelets do, whose keys change; and one that
// registers has no Node yet. A nil NodeKeys lets all in.
func (k *NodeKeys) Judge(ctx context.Context, who revocation.Identity) error {
	node, ok := trust.NodeOfUser(who.User)
	if k == nil || !ok || who.Key == "" {
		return nil
	}
	for _, version := range []string{"0", ""} { // what this replica does not know, it may not know yet
		known, err := k.key(ctx, node, version)
		if err != nil {
			return fmt.Errorf("whose the name of node %s is cannot be looked up: %w", node, err)
		}
		if known == "" || known == who.Key {
			return nil
		}
	}
	return fmt.Errorf("node %s: %w", node, ErrNodeKey)
}

// key is "" if there is none.
func (k *NodeKeys) key(ctx context.Context, node, version string) (string, error) {
	found, err := k.store.Table(nodesResource).Get(ctx, "", node, version)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return found.Object().(*corev1.Node).Annotations[trust.NodeKeyAnnotation], nil
}
