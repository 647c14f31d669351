package server

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
)

// namedByGateways tells whether a Gateway that nodes serve names the Secret, and may, or a policy for its backends the ConfigMap. It
// reads what this replica has.
func (a *api) namedByGateways(resource, namespace, name string) bool {
	ctx := context.Background()
	tables, err := a.custom.Instances(ctx)
	if err != nil {
		return false
	}
	kept := map[string][]*unstructured.Unstructured{}
	for gvr, table := range tables {
		if gvr.Group != gatewayapi.GroupVersion.Group {
			continue
		}
		if gatewayapi.Names(gvr.Resource) {
			kept[gvr.Resource] = all(ctx, table)
		}
	}
	objects := gatewayapi.Read(kept)
	return slices.Contains(objects.Named(resource), types.NamespacedName{Namespace: namespace, Name: name})
}

func all(ctx context.Context, table *storage.Table) (found []*unstructured.Unstructured) {
	page, err := table.List(ctx, storage.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil
	}
	for _, item := range page.Items {
		if u, ok := item.Object().(*unstructured.Unstructured); ok {
			found = append(found, u)
		}
	}
	return found
}
