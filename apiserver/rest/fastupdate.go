package rest

import (
	"context"
	"errors"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// fastUpdate serves plain PUTs, and hands the others on.
func (p *plainWrites) fastUpdate(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if write, plain := p.read(w, r); plain {
			write.update()
		} else {
			next(w, r)
		}
	}
}

func (p *plainWrite) update() {
	ctx, cancel := context.WithTimeout(p.r.Context(), writeTimeout)
	defer cancel()
	status := http.StatusOK
	obj, created, err := p.updated(request.WithNamespace(ctx, p.info.Namespace))
	if created {
		status = http.StatusCreated
	}
	p.answer(ctx, status, obj, err)
}

func (p *plainWrite) updated(ctx context.Context) (runtime.Object, bool, error) {
	// It matches, or fits would not have let it pass; the namespace is filled in.
	if err := rest.EnsureObjectNamespaceMatchesRequestNamespace(rest.ExpectedNamespaceForResource(p.info.Namespace,
		p.scope.Resource), p.obj); err != nil {
		return nil, false, err
	}
	options := &metav1.UpdateOptions{TypeMeta: updateOptionsType, FieldManager: p.fieldManager, FieldValidation: p.fieldValidation}
	createOptions := &metav1.CreateOptions{TypeMeta: createOptionsType, FieldManager: p.fieldManager, FieldValidation: p.fieldValidation}
	admit := func(ctx context.Context, obj, live runtime.Object) (runtime.Object, error) {
		if live.(resource.Object).GetUID() == "" {
			return obj, p.mutate(ctx, p.attributes(obj, nil, admission.Create, createOptions))
		}
		return obj, p.mutate(ctx, p.attributes(obj, live, admission.Update, options))
	}
	return p.store.Update(ctx, p.info.Name, rest.DefaultUpdatedObjectInfo(p.obj, p.own, admit),
		p.mayCreate(rest.AdmissionToValidateObjectFunc(p.admit, p.attributes(nil, nil, admission.Create, createOptions), p.scope)),
		rest.AdmissionToValidateObjectUpdateFunc(p.admit, p.attributes(nil, nil, admission.Update, options), p.scope),
		false, options)
}

var updateOptionsType = metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "UpdateOptions"}

func (p *plainWrite) attributes(obj, live runtime.Object, operation admission.Operation, options runtime.Object) admission.Attributes {
	return admission.NewAttributesRecord(obj, live, p.scope.Kind, p.info.Namespace, p.info.Name, p.scope.Resource, "",
		operation, options, false, p.user)
}

// own is the transformation that says who owns the fields of the new object.
func (p *plainWrite) own(_ context.Context, obj, live runtime.Object) (runtime.Object, error) {
	return p.owners.Updated(live.(resource.Object), obj.(resource.Object), p.manager), nil
}

var errNoAuthorizer = errors.New("no authorizer provided, unable to authorize a create on update")

// mayCreate asks whether the client may create, where an update has to.
func (p *plainWrite) mayCreate(validate rest.ValidateObjectFunc) rest.ValidateObjectFunc {
	return func(ctx context.Context, obj runtime.Object) error {
		if p.scope.Authorizer == nil {
			return apierrors.NewInternalError(errNoAuthorizer)
		}
		asked := authorizer.AttributesRecord{
			User: p.user, ResourceRequest: true, Path: p.r.URL.Path, Verb: "create",
			APIGroup: p.scope.Resource.Group, APIVersion: p.scope.Resource.Version, Resource: p.scope.Resource.Resource,
			Namespace: p.info.Namespace, Name: p.info.Name,
		}
		decision, reason, err := p.scope.Authorizer.Authorize(ctx, asked)
		switch {
		case decision == authorizer.DecisionAllow:
			return validate(ctx, obj)
		case err != nil:
			return apierrors.NewInternalError(err)
		default:
			return responsewriters.ForbiddenStatusError(asked, reason)
		}
	}
}
