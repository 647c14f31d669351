package crd

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Instances returns a table of instances for each definition that has any, under the
// name by which they can be deleted. The objects are as they were kept, under any
// version and past any schema: only their metadata means something.
func (c *Catalog) Instances(ctx context.Context) (map[schema.GroupVersionResource]*storage.Table, error) {
	page, err := c.table.List(ctx, storage.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, err
	}
	found := map[schema.GroupVersionResource]*storage.Table{}
	for _, item := range page.Items {
		crd := item.Object().(*apiextensionsv1.CustomResourceDefinition)
		if !isServed(crd) {
			continue
		}
		if table := c.kept(crd); !table.Empty() {
			found[table.Kind().GroupVersionResource()] = table
		}
	}
	return found, nil
}

func (c *Catalog) kept(crd *apiextensionsv1.CustomResourceDefinition) *storage.Table {
	names := crd.Status.AcceptedNames
	gvk := schema.GroupVersionKind{Group: crd.Spec.Group, Version: deletableVersion(crd), Kind: names.Kind}
	return c.config.Storage.NewTable(storage.Dynamic{
		Kind: resource.Erase(resource.Kind[*unstructured.Unstructured]{
			GroupVersionKind: gvk, Plural: names.Plural, ClusterScoped: crd.Spec.Scope == apiextensionsv1.ClusterScoped,
			New: func() *unstructured.Unstructured { return &unstructured.Unstructured{Object: map[string]any{}} },
		}),
		Serve: func(kept []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) { return kept, nil },
		Until: context.Background(),
	})
}

// deletableVersion is a version that is served: the storage version, or else the first.
func deletableVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	version, _ := apihelpers.GetCRDStorageVersion(crd) // validation demands one
	if hasVersion(crd, version) {
		return version
	}
	for _, v := range crd.Spec.Versions {
		if v.Served {
			return v.Name
		}
	}
	return version
}
