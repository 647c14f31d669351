package join

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// Names gives names to keys. The Node is the claim: it is made when a machine joins,
// with the hash of its key, and the name is free again when it is deleted.
type Names struct {
	// Nodes is a client that may create, read and write every Node.
	Nodes corev1client.NodeInterface
}

// Claim is for HandlerConfig.
func (n Names) Claim(ctx context.Context, node, keyHash string, shown bool) error {
	_, err := n.Nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: node, Annotations: map[string]string{trust.NodeKeyAnnotation: keyHash},
	}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	known, err := n.Nodes.Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return err
	}
	switch recorded := known.Annotations[trust.NodeKeyAnnotation]; {
	case recorded == keyHash:
		return nil
	case recorded == "" && shown: // it registered in another way, or before there were records
		return n.record(ctx, known, keyHash)
	}
	return ErrNameTaken
}

// record fails if the Node was deleted since it was read: the node asks again.
func (n Names) record(ctx context.Context, known *corev1.Node, keyHash string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": known.UID, "annotations": map[string]string{trust.NodeKeyAnnotation: keyHash},
	}})
	if err != nil {
		return err
	}
	_, err = n.Nodes.Patch(ctx, known.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
