package rest

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
)

// TypedBinding is a binding that a part of this process asks for: an object in place of a body, and an error in place of an answer.
type TypedBinding struct {
	Binding *corev1.Binding
	// Answered tells that the binding was carried out or refused with Err. Otherwise the request did not come that far, and its
	// answer says why.
	Answered bool
	Err      error
}

type typedBindingKey struct{}

// WithTypedBinding makes a request for pods/binding one for the binding b.
func WithTypedBinding(ctx context.Context, b *TypedBinding) context.Context {
	return context.WithValue(ctx, typedBindingKey{}, b)
}

// typedBindings serves bindings that come as objects, and hands the others on. It does what upstream's handler does with
// one that it has decoded.
type typedBindings struct {
	store  bindingStore
	scope  *handlers.RequestScope
	admit  admission.Interface
	codecs serializer.CodecFactory
}

func (t typedBindings) before(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		call, typed := r.Context().Value(typedBindingKey{}).(*TypedBinding)
		if !typed {
			next(w, r)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), writeTimeout)
		defer cancel()
		call.Err = t.create(ctx, call.Binding)
		call.Answered = true
		code := http.StatusCreated
		if call.Err != nil {
			code = int(responsewriters.ErrorToAPIStatus(call.Err).Code)
		}
		w.WriteHeader(code)
	}
}

func (t typedBindings) create(ctx context.Context, b *corev1.Binding) error {
	audit.LogRequestObject(ctx, b, t.scope.Kind.GroupVersion(), t.scope.Resource, t.scope.Subresource, t.codecs)
	who, _ := request.UserFrom(ctx)
	ctx, options := request.WithNamespace(ctx, b.Namespace), &metav1.CreateOptions{TypeMeta: createOptionsType}
	attributes := admission.NewAttributesRecord(
		b, nil, t.scope.Kind, b.Namespace, b.Name, t.scope.Resource, t.scope.Subresource, admission.Create, options, false, who)
	if mutation, ok := t.admit.(admission.MutationInterface); ok && mutation.Handles(admission.Create) {
		if err := mutation.Admit(ctx, attributes, t.scope); err != nil {
			return err
		}
	}
	answer, err := t.store.Create(ctx, b.Name, b, rest.AdmissionToValidateObjectFunc(t.admit, attributes, t.scope), options)
	if err == nil {
		audit.LogResponseObject(ctx, answer, t.scope.Kind.GroupVersion(), t.codecs)
	}
	return err
}
