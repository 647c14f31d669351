package server

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
)

// isCertificate tells whether a Gateway that nodes serve names the Secret, and may. It reads what this replica has.
func (a *api) isCertificate(namespace, secret string) bool {
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
		switch gvr.Resource {
		case "gatewayclasses", "gateways", "referencegrants":
			kept[gvr.Resource] = all(ctx, table)
		}
	}
	objects := gatewayapi.ReadGateways(kept["gatewayclasses"], kept["gateways"], kept["referencegrants"])
	return gatewayapi.Secrets(gatewayapi.Ours(&objects), objects.Grants)[[2]string{namespace, secret}]
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
