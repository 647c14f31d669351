package disruption

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	scaleclient "k8s.io/client-go/scale"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

var errNoClient = errors.New("there is no client for scale subresources")

// scales reads scale subresources, of whatever kind has one.
type scales struct {
	mapper    meta.RESTMapper
	client    scaleclient.ScalesGetter // nil if there is none
	discovery discovery.ServerResourcesInterface
}

func newScales(env *reconcile.Env) (scales, error) {
	if env.REST == nil || env.Discovery == nil {
		return scales{}, nil
	}
	config := rest.CopyConfig(env.REST)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON // custom resources have no other
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(env.Discovery))
	client, err := scaleclient.NewForConfig(config, mapper, dynamic.LegacyAPIPathResolverFunc,
		scaleclient.NewDiscoveryScaleKindResolver(env.Discovery))
	return scales{mapper, client, env.Discovery}, err
}

// find reads the scale of what an owner reference names; nil if it is not there, or another of its name.
func (s scales) find(ctx context.Context, kind schema.GroupVersionKind, namespace string, ref *metav1.OwnerReference) (*scaled, error) {
	if s.client == nil {
		return nil, errNoClient
	}
	mapping, err := s.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	found, err := s.client.Scales(namespace).Get(ctx, mapping.Resource.GroupResource(), ref.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, s.expectScale(mapping.Resource)
	case err != nil:
		return nil, err
	case found.UID != ref.UID:
		return nil, nil
	}
	return &scaled{found.UID, found.Spec.Replicas}, nil
}

// expectScale tells apart what is not there from what has no scale.
func (s scales) expectScale(resource schema.GroupVersionResource) error {
	list, err := s.discovery.ServerResourcesForGroupVersion(resource.GroupVersion().String())
	if err != nil {
		return err
	}
	versions := scaleclient.NewScaleConverter().ScaleVersions()
	for _, r := range list.APIResources {
		if r.Name == resource.Resource+"/scale" && r.Kind == "Scale" &&
			slices.Contains(versions, schema.GroupVersion{Group: r.Group, Version: r.Version}) {
			return nil
		}
	}
	return fmt.Errorf("%s does not implement the scale subresource", resource.GroupResource())
}
