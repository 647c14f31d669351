package reconciletest

import (
	"context"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	fakediscovery "k8s.io/client-go/discovery/fake"
	"k8s.io/client-go/metadata"
	ktesting "k8s.io/client-go/testing"
)

// Kind is one kind of the world, for discovery and the metadata client.
type Kind struct {
	Resource   schema.GroupVersionResource
	Kind       string
	Namespaced bool
}

// Discovery answers for the given kinds.
func (w *World) Discovery(kinds []Kind) discovery.DiscoveryInterface {
	lists := map[string]*metav1.APIResourceList{}
	for _, k := range kinds {
		gv := k.Resource.GroupVersion().String()
		if lists[gv] == nil {
			lists[gv] = &metav1.APIResourceList{GroupVersion: gv}
			w.Client.Resources = append(w.Client.Resources, lists[gv])
		}
		lists[gv].APIResources = append(lists[gv].APIResources, metav1.APIResource{
			Name: k.Resource.Resource, Kind: k.Kind, Namespaced: k.Namespaced,
			Group: k.Resource.Group, Version: k.Resource.Version,
			Verbs: metav1.Verbs{"list", "delete", "deletecollection", "get", "patch", "update", "watch"},
		})
	}
	return w.Client.Discovery().(*fakediscovery.FakeDiscovery)
}

// Metadata is a metadata client over the same objects.
func (w *World) Metadata(kinds []Kind) metadata.Interface { return metadataClient{w, kinds} }

type metadataClient struct {
	w     *World
	kinds []Kind
}

// Resource selects a kind.
func (c metadataClient) Resource(r schema.GroupVersionResource) metadata.Getter {
	kind := ""
	for _, k := range c.kinds {
		if k.Resource == r {
			kind = k.Kind
		}
	}
	return metadataResource{w: c.w, resource: r, kind: kind}
}

type metadataResource struct {
	w         *World
	resource  schema.GroupVersionResource
	kind      string
	namespace string
}

// Namespace narrows the client.
func (r metadataResource) Namespace(ns string) metadata.ResourceInterface {
	r.namespace = ns
	return r
}

// Delete deletes one object.
func (r metadataResource) Delete(_ context.Context, name string, opts metav1.DeleteOptions, _ ...string) error {
	_, err := r.w.Client.Invokes(ktesting.NewDeleteActionWithOptions(r.resource, r.namespace, name, opts), nil)
	return err
}

// DeleteCollection deletes all objects of the namespace.
func (r metadataResource) DeleteCollection(ctx context.Context, opts metav1.DeleteOptions, _ metav1.ListOptions) error {
	list, err := r.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, o := range list.Items {
		if err := r.Delete(ctx, o.Name, opts); err != nil {
			return err
		}
	}
	return nil
}

// Get reads one object.
func (r metadataResource) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*metav1.PartialObjectMetadata, error) {
	o, err := r.w.Client.Tracker().Get(r.resource, r.namespace, name)
	if err != nil {
		return nil, err
	}
	return r.partial(o), nil
}

func (r metadataResource) partial(o runtime.Object) *metav1.PartialObjectMetadata {
	return meta.AsPartialObjectMetadata(must(meta.Accessor(o.DeepCopyObject())))
}

// List reads all objects of the namespace.
func (r metadataResource) List(context.Context, metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	list, err := r.w.Client.Tracker().List(r.resource, r.resource.GroupVersion().WithKind(r.kind), r.namespace)
	if err != nil {
		return nil, err
	}
	r.w.mu.Lock()
	out := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(r.w.seq)}}
	r.w.mu.Unlock()
	err = meta.EachListItem(list, func(o runtime.Object) error {
		out.Items = append(out.Items, *r.partial(o))
		return nil
	})
	return out, err
}

// Watch is not offered: controllers watch through informers.
func (r metadataResource) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return nil, apierrors.NewMethodNotSupported(r.resource.GroupResource(), "watch")
}

// Patch patches one object.
func (r metadataResource) Patch(
	_ context.Context,
	name string,
	pt types.PatchType,
	body []byte,
	_ metav1.PatchOptions,
	_ ...string,
) (*metav1.PartialObjectMetadata, error) {
	o, err := r.w.Client.Invokes(ktesting.NewPatchAction(r.resource, r.namespace, name, pt, body), &metav1.Status{})
	if err != nil {
		return nil, err
	}
	return r.partial(o), nil
}
