package named

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/explain"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Question names an object as kubectl does.
type Question struct {
	// Kind is a kind, resource or short name, with or without its group.
	Kind string `json:"kind"`
	// Namespace is that of the object; it is ignored for kinds without.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// Kinds are all that there are.
type Kinds struct {
	Storage *storage.Store
	// CustomKinds and Custom are the kinds that are not built in, and their tables.
	CustomKinds func(ctx context.Context) ([]*resource.Any, error)
	Custom      func(ctx context.Context) (map[schema.GroupVersionResource]*storage.Table, error)
}

// Resolve finds the kind that is meant: built-in ones first, in their order.
func (k Kinds) Resolve(ctx context.Context, q Question) (explain.Object, error) {
	custom, err := k.CustomKinds(ctx)
	if err != nil {
		return explain.Object{}, err
	}
	for _, kinds := range [][]*resource.Any{k.Storage.Kinds(), custom} {
		for _, kind := range kinds {
			if !called(kind, strings.ToLower(q.Kind)) {
				continue
			}
			o := explain.Object{
				Kind: kind.GroupVersionKind.Kind, Group: kind.GroupVersionKind.Group, Resource: kind.Plural, Namespace: q.Namespace, Name: q.Name,
			}
			if kind.ClusterScoped {
				o.Namespace = ""
			}
			return o, nil
		}
	}
	return explain.Object{}, apierrors.NewBadRequest(fmt.Sprintf("the server doesn't have a resource type %q", q.Kind))
}

// called tells whether a kind goes by a name, in lower-case letters.
func called(kind *resource.Any, name string) bool {
	if kind.StoredAs != (schema.GroupResource{}) {
		return false
	}
	name, group, qualified := strings.Cut(name, ".")
	if qualified && group != kind.GroupVersionKind.Group {
		return false
	}
	for _, own := range append([]string{kind.Plural, kind.SingularName(), strings.ToLower(kind.GroupVersionKind.Kind)}, kind.ShortNames...) {
		if name == own {
			return true
		}
	}
	return false
}

// Tables are those of all kinds, each in one version.
func (k Kinds) Tables(ctx context.Context) (map[schema.GroupResource]*storage.Table, error) {
	custom, err := k.Custom(ctx)
	if err != nil {
		return nil, err
	}
	tables := map[schema.GroupResource]*storage.Table{}
	for gvr, table := range custom {
		tables[gvr.GroupResource()] = table
	}
	for _, kind := range k.Storage.Kinds() {
		gvr := kind.GroupVersionResource()
		if _, known := tables[gvr.GroupResource()]; !known && kind.StoredAs == (schema.GroupResource{}) {
			tables[gvr.GroupResource()] = k.Storage.Table(gvr)
		}
	}
	return tables, nil
}

// MayGet reports whether a caller may get an object, by the roles of now.
func MayGet(ctx context.Context, judge authorizer.Authorizer, caller user.Info, o explain.Object) bool {
	return May(ctx, judge, caller, "get", o)
}

// May reports whether a caller may do something with an object, or with all of its namespace if it has no name, by the roles of now.
func May(ctx context.Context, judge authorizer.Authorizer, caller user.Info, verb string, o explain.Object) bool {
	decision, _, err := judge.Authorize(ctx, authorizer.AttributesRecord{
		User: caller, Verb: verb, Namespace: o.Namespace, APIGroup: o.Group, APIVersion: "*", Resource: o.Resource, Name: o.Name, ResourceRequest: true,
	})
	return err == nil && decision == authorizer.DecisionAllow
}

// Forbidden is the refusal of a caller who may not get an object.
func Forbidden(caller user.Info, o explain.Object) error { return ForbiddenTo(caller, "get", o) }

// ForbiddenTo is the refusal of a caller who may not do something.
func ForbiddenTo(caller user.Info, verb string, o explain.Object) error {
	where := "at the cluster scope"
	if o.Namespace != "" {
		where = fmt.Sprintf("in the namespace %q", o.Namespace)
	}
	//lint:ignore ST1005 upstream's words
	reason := fmt.Errorf("User %q cannot %s resource %q in API group %q %s", caller.GetName(), verb, o.Resource, o.Group, where)
	return apierrors.NewForbidden(schema.GroupResource{Group: o.Group, Resource: o.Resource}, o.Name, reason)
}
