package storagemigration

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// page is how many objects are listed at once.
const page = 500

// verbs are those that a resource needs to be migrated.
var verbs = []string{"update", "patch", "list"}

// found is a resource as discovery knows it.
type found struct {
	schema.GroupVersionResource
	kind       string
	migratable bool
}

// discover looks for a resource, in the preferred version first; nil: there is none.
func (c *controller) discover(_ context.Context, wanted metav1.GroupResource) (*found, error) {
	groups, err := c.env.Discovery.ServerGroups()
	if err != nil {
		return nil, fmt.Errorf("discover groups: %w", err)
	}
	var versions []string
	for _, group := range groups.Groups {
		if group.Name != wanted.Group {
			continue
		}
		versions = append(versions, group.PreferredVersion.GroupVersion)
		for _, version := range group.Versions {
			versions = append(versions, version.GroupVersion)
		}
	}
	for _, version := range versions {
		resource, err := c.discoverIn(version, wanted)
		if resource != nil || err != nil {
			return resource, err
		}
	}
	return nil, nil
}

func (c *controller) discoverIn(version string, wanted metav1.GroupResource) (*found, error) {
	gv, err := schema.ParseGroupVersion(version)
	if err != nil || version == "" {
		return nil, err
	}
	list, err := c.env.Discovery.ServerResourcesForGroupVersion(version)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("discover %s: %w", version, err)
	}
	for _, resource := range list.APIResources {
		if resource.Name == wanted.Resource {
			lacks := slices.ContainsFunc(verbs, func(verb string) bool { return !slices.Contains(resource.Verbs, verb) })
			return &found{gv.WithResource(resource.Name), resource.Kind, !lacks}, nil
		}
	}
	return nil, nil
}

// latest is the version of the resource's objects now.
func (c *controller) latest(ctx context.Context, resource *found) (string, error) {
	list, err := c.env.Metadata.Resource(resource.GroupVersionResource).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", fmt.Errorf("error getting latest resourceVersion for %s: %w", resource.String(), err)
	}
	return list.ResourceVersion, nil
}

// objects are all of the resource, as of now.
func (c *controller) objects(ctx context.Context, resource *found) ([]object, error) {
	var all []object
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := c.env.Metadata.Resource(resource.GroupVersionResource).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", resource.String(), err)
		}
		for i := range list.Items {
			all = append(all, object{list.Items[i].Namespace, list.Items[i].Name, list.Items[i].ResourceVersion})
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return all, nil
		}
	}
}
