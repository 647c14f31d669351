package rest

import (
	"context"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/apiserver/admission/quota"
	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/rest/addresses"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Quota limits what namespaces hold.
type Quota interface {
	// Charge adds to the view's transaction what a write changes, or refuses it.
	Charge(v *storage.View, w quota.Write) error
	// Hold lets the creators of one namespace through one by one.
	Hold(ctx context.Context, namespace string) (release func(), err error)
}

// charged is a change that the quotas of its namespace agree with.
func (s *Store) charged(v *storage.View, change *storage.Change, obj, old resource.Object) (*storage.Change, error) {
	if s.quota == nil {
		return change, nil
	}
	return change, s.quota.Charge(v, quota.Write{Kind: s.kind, Obj: obj, Old: old, Status: s.ofStatus})
}

// shared refuses who claims more for a namespace than it has as its share, a loop that does it for a tenant too. Administrators may.
func (s *Store) shared(ctx context.Context, v *storage.View, obj resource.Object, claims, releases []string) error {
	if who, known := request.UserFrom(ctx); !known || auth.IsAdmin(who) {
		return nil
	}
	return addresses.CheckShare(v, obj, claims, releases)
}

// held waits for the turn of a creator.
func (s *Store) held(ctx context.Context, namespace string) (release func(), err error) {
	if s.quota == nil || s.kind.ClusterScoped {
		return func() {}, nil
	}
	return s.quota.Hold(ctx, namespace)
}
