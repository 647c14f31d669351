package rest

import (
	"context"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/setpoint-io/setpoint/apiserver/auth/reviews"
)

// reviewStore serves a kind that is answered instead of stored.
type reviewStore struct {
	reviews.Review
}

var _ rest.Creater = reviewStore{}

func (e *Endpoints) addReview(r reviews.Review) error {
	store := reviewStore{r}
	// Without columns: who asks for a table of answers gets 406, as upstream.
	scope, err := e.scope(r.Kind, "", r.Kind.GroupVersionKind, nil, nil)
	if err != nil {
		return err
	}
	e.kinds[r.Kind.GroupVersionResource()] = r.Kind
	e.add(r.Kind, "", map[string]http.HandlerFunc{
		"create": once(func() http.HandlerFunc { return handlers.CreateResource(store, scope, e.config.Admission) }),
	})
	return nil
}

// New implements rest.Storage.
func (r reviewStore) New() runtime.Object { return r.Kind.New() }

// Destroy implements rest.Storage; a review holds nothing.
func (r reviewStore) Destroy() {}

// Create implements rest.Creater.
func (r reviewStore) Create(ctx context.Context, question runtime.Object, validate rest.ValidateObjectFunc,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	if validate != nil {
		if err := validate(ctx, question.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	return r.Answer(ctx, question)
}
