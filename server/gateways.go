package server

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
	"github.com/setpoint-io/setpoint/server/firstroutes"
)

// namedByGateways tells whether a Gateway that nodes serve names the Secret, and may, or a policy for its backends the ConfigMap. It
// reads what this replica has.
func (a *api) namedByGateways(resource, namespace, name string) bool {
	objects, err := a.gatewayObjects(context.Background(), gatewayapi.Names)
	if err != nil {
		return false
	}
	return slices.Contains(objects.Named(resource), types.NamespacedName{Namespace: namespace, Name: name})
}

// gatewayObjects are those of the Gateway API that this replica has, of some of the kinds, by their plurals.
func (a *api) gatewayObjects(ctx context.Context, some func(plural string) bool) (gatewayapi.Objects, error) {
	tables, err := a.custom.Instances(ctx)
	if err != nil {
		return gatewayapi.Objects{}, err
	}
	kept := map[string][]*unstructured.Unstructured{}
	for gvr, table := range tables {
		if gvr.Group == gatewayapi.GroupVersion.Group && some(gvr.Resource) {
			kept[gvr.Resource] = all(ctx, table)
		}
	}
	return gatewayapi.Read(kept), nil
}

// firstRoutes reads caches that the control loops read, too.
func (a *api) firstRoutes() firstroutes.Plugin {
	core, networking := a.caches.Core().V1(), a.caches.Networking().V1()
	return firstroutes.Plugin{
		Objects: func(ctx context.Context) (gatewayapi.Objects, error) {
			return a.gatewayObjects(ctx, func(string) bool { return true })
		},
		Services: core.Services().Lister(), Namespaces: core.Namespaces().Lister(), Nodes: core.Nodes().Lister(),
		Ingresses: networking.Ingresses().Lister(), Classes: networking.IngressClasses().Lister(), Reserved: a.reserved,
		Synced: append([]cache.InformerSynced{
			core.Services().Informer().HasSynced, core.Namespaces().Informer().HasSynced, core.Nodes().Informer().HasSynced,
			networking.Ingresses().Informer().HasSynced, networking.IngressClasses().Informer().HasSynced,
		}, a.machinesKnown...),
	}
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
