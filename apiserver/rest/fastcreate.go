package rest

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// fastCreate serves plain creates, and hands the others on.
func (p *plainWrites) fastCreate(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if write, plain := p.read(w, r); plain {
			write.create()
		} else {
			next(w, r)
		}
	}
}

func (p *plainWrite) create() {
	ctx, cancel := context.WithTimeout(p.r.Context(), writeTimeout)
	defer cancel()
	obj, err := p.created(ctx)
	p.answer(ctx, http.StatusCreated, obj, err)
}

func (p *plainWrite) created(ctx context.Context) (runtime.Object, error) {
	namespace, name := p.info.Namespace, p.obj.GetName()
	if namespace == "" && p.scope.Resource == namespacesResource {
		namespace = name
	}
	ctx = request.WithNamespace(ctx, namespace)
	rest.WipeObjectMetaSystemFields(p.obj)
	// It matches, or fits would not have let it pass; the namespace is filled in.
	if err := rest.EnsureObjectNamespaceMatchesRequestNamespace(rest.ExpectedNamespaceForResource(namespace,
		p.scope.Resource), p.obj); err != nil {
		return nil, err
	}
	options := &metav1.CreateOptions{TypeMeta: createOptionsType, FieldManager: p.fieldManager, FieldValidation: p.fieldValidation}
	obj := p.owners.Created(p.obj, p.manager)
	attributes := admission.NewAttributesRecord(obj, nil, p.scope.Kind, namespace, name, p.scope.Resource, "", admission.Create, options, false, p.user)
	if err := p.mutate(ctx, attributes); err != nil {
		return nil, err
	}
	return p.store.Create(ctx, obj, rest.AdmissionToValidateObjectFunc(p.admit, attributes, p.scope), options)
}

var createOptionsType = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "CreateOptions"}
