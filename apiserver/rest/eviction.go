package rest

import (
	"context"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// evictionStore serves pods/eviction: a delete that may be refused to protect an
// application. No PodDisruptionBudget is served yet, so nothing refuses so far.
type evictionStore struct {
	pods *Store
}

var _ rest.NamedCreater = evictionStore{}

// New implements rest.Storage.
func (e evictionStore) New() runtime.Object { return &policyv1.Eviction{} }

// Destroy implements rest.Storage.
func (e evictionStore) Destroy() {}

// Create implements rest.NamedCreater.
func (e evictionStore) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	eviction, ok := obj.(*policyv1.Eviction)
	if !ok {
		return nil, apierrors.NewBadRequest("not an Eviction object")
	}
	if eviction.Name != "" && eviction.Name != name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	if validate != nil {
		if err := validate(ctx, eviction.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	deletion := eviction.DeleteOptions
	if deletion == nil {
		deletion = &metav1.DeleteOptions{}
	}
	if len(options.DryRun) > 0 {
		deletion.DryRun = options.DryRun
	}
	if _, _, err := e.pods.Delete(ctx, name, nil, deletion); err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}
