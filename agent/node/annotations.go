package node

import (
	"context"
	"encoding/json"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// annotations are what others have to know of the node.
func (k *keeper) annotations() map[string]string {
	all := map[string]string{}
	if k.Annotations != nil {
		maps.Copy(all, k.Annotations())
	}
	return all
}

// unsaid are those that the Node as last seen does not have, or has otherwise.
func (k *keeper) unsaid() map[string]string {
	all := k.annotations()
	maps.DeleteFunc(all, func(key, value string) bool {
		said, ok := k.last.Annotations[key]
		return ok && said == value
	})
	return all
}

// annotate writes what is unsaid, and leaves the annotations of others alone.
func (k *keeper) annotate(ctx context.Context) error {
	unsaid := k.unsaid()
	if len(unsaid) == 0 {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": unsaid}})
	if err != nil {
		return err
	}
	got, err := k.Client.CoreV1().Nodes().Patch(ctx, k.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return err
	}
	k.saw(got)
	return nil
}

// more are the conditions that package agent adds.
func (k *keeper) more() []corev1.NodeCondition {
	if k.Conditions == nil {
		return nil
	}
	return k.Conditions()
}
