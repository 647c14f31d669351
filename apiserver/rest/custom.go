package rest

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	k8smanagedfields "k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/setpoint-io/setpoint/apiserver/managedfields"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Custom is one version of a custom resource: what the handlers must know of
// objects that have no Go type. All fields are required.
type Custom struct {
	Kind    *resource.Any
	Table   *storage.Table
	Columns rest.TableConvertor

	Serializer runtime.NegotiatedSerializer
	Creater    runtime.ObjectCreater
	Typer      runtime.ObjectTyper
	Defaulter  runtime.ObjectDefaulter
	// Convertor copies what it converts, UnsafeConvertor may change it.
	Convertor, UnsafeConvertor runtime.ObjectConvertor
	// TypeConverter knows the schemas of all versions, for field managedfields.
	TypeConverter k8smanagedfields.TypeConverter
	// Equivalents knows all served versions.
	Equivalents runtime.EquivalentResourceRegistry
	// StatusVersions are the apiVersions that have a status subresource.
	StatusVersions []string
	// Guard judges each creation (true) and change within its transaction.
	Guard func(v *storage.View, creating bool) error
}

// customPatchTypes: a strategic merge needs a Go type.
var customPatchTypes = []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}

// Custom builds the handlers of one version of a custom resource. They use the
// receiver's admission and authorizer, and are not added to it.
func (e *Endpoints) Custom(c Custom) (*Endpoints, error) {
	gvr := c.Kind.GroupVersionResource()
	store := newStore(c.Kind, c.Table, c.Typer)
	store.TableConvertor, store.guard, store.quota = uncached{c.Columns}, c.Guard, e.config.Quota
	custom := &Endpoints{
		config: e.config, equivalents: c.Equivalents, convertor: e.convertor, custom: &c, patchTypes: customPatchTypes,
		kinds:    map[schema.GroupVersionResource]*resource.Any{gvr: c.Kind},
		stores:   map[schema.GroupVersionResource]*Store{gvr: store},
		handlers: map[endpoint]http.HandlerFunc{},
	}
	return custom, custom.addKind(c.Kind)
}

// uncached lets upstream's table convertor see the objects themselves.
type uncached struct{ rest.TableConvertor }

func (u uncached) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return u.TableConvertor.ConvertToTable(ctx, storage.Uncache(obj), options)
}

// serializer is what speaks the objects served here.
func (e *Endpoints) serializer() runtime.NegotiatedSerializer {
	if e.custom != nil {
		return e.custom.Serializer
	}
	return e.config.Codecs
}

// customScope is scope for a custom resource itself and its status. A scale is a
// built-in kind, whatever it belongs to.
func (e *Endpoints) customScope(subresource string, table rest.TableConvertor) (*handlers.RequestScope, error) {
	c := e.custom
	gvk := c.Kind.GroupVersionKind
	fieldManager, err := k8smanagedfields.NewDefaultCRDFieldManager(c.TypeConverter, c.Convertor, c.Defaulter, c.Creater,
		gvk, gvk.GroupVersion(), subresource, fieldpath.NewExcludeFilterSetMap(c.resets(subresource)))
	if err != nil {
		return nil, err
	}
	return &handlers.RequestScope{
		Namer:      handlers.ContextBasedNaming{Namer: meta.NewAccessor(), ClusterScoped: c.Kind.ClusterScoped},
		Serializer: c.Serializer, ParameterCodec: runtime.NewParameterCodec(e.config.Scheme),
		StandardSerializers: withoutProtobuf(c.Serializer.SupportedMediaTypes()),
		Creater:             c.Creater, Convertor: c.Convertor, Defaulter: c.Defaulter, Typer: c.Typer, UnsafeConvertor: c.UnsafeConvertor,
		Authorizer:               e.config.Authorizer,
		EquivalentResourceMapper: e.equivalents,
		TableConvertor:           table,
		FieldManager:             fieldManager,
		Resource:                 c.Kind.GroupVersionResource(),
		Kind:                     gvk,
		Subresource:              subresource,
		MetaGroupVersion:         metav1.SchemeGroupVersion,
		HubGroupVersion:          gvk.GroupVersion(),
		MaxRequestBodyBytes:      MaxBodyBytes,
	}, nil
}

// resets are the fields that a write through the subresource does not change.
func (c *Custom) resets(subresource string) map[fieldpath.APIVersion]*fieldpath.Set {
	sets := map[fieldpath.APIVersion]*fieldpath.Set{}
	switch {
	case subresource == "status":
		for _, version := range c.StatusVersions {
			sets[fieldpath.APIVersion(version)] = fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec"))
		}
	case c.Kind.HasStatus():
		sets[fieldpath.APIVersion(c.Kind.GroupVersionKind.GroupVersion().String())] = managedfields.Resets([]string{"status"})
	}
	return sets
}

func withoutProtobuf(all []runtime.SerializerInfo) []runtime.SerializerInfo {
	var standard []runtime.SerializerInfo
	for _, info := range all {
		if info.MediaType != runtime.ContentTypeProtobuf {
			standard = append(standard, info)
		}
	}
	return standard
}
