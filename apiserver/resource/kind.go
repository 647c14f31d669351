package resource

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Object is what every stored object is: typed data with metadata.
type Object interface {
	runtime.Object
	metav1.Object
}

// Any is a kind whose Go type has been erased.
type Any = Kind[Object]

// Kind describes one kind of the API. GroupVersionKind, Plural, New and NewList
// are required; every function may be nil, which means "nothing particular".
//
// The order on a write is: decode, Default, admission, PrepareCreate or
// PrepareUpdate, Validate or ValidateUpdate, store.
type Kind[T Object] struct {
	GroupVersionKind schema.GroupVersionKind
	// Plural is the name in URLs; Singular defaults to the lower-case kind.
	Plural, Singular       string
	ShortNames, Categories []string
	ClusterScoped          bool

	New     func() T
	NewList func() runtime.Object

	// ValidateName judges metadata.name (prefix: a generateName). Default: DNS subdomain.
	ValidateName validation.ValidateNameFunc
	// Default fills unset fields, on decode; running it twice changes nothing.
	Default func(obj T)
	// PrepareCreate sets what the server owns, after status has been cleared.
	PrepareCreate func(obj T)
	// Requested records who asks for a new object, where its meaning depends on that.
	Requested func(obj T, by user.Info)
	// PrepareUpdate runs after status was carried over from old; it restores what an update may not touch.
	PrepareUpdate func(obj, old T)
	// StampUpdate runs after PrepareUpdate, and notes when something changed.
	StampUpdate func(obj, old T, now time.Time)
	// PrepareStatus is PrepareUpdate for the status subresource, after the spec was carried over from old.
	PrepareStatus  func(obj, old T)
	Validate       func(obj T) field.ErrorList
	ValidateUpdate func(obj, old T) field.ErrorList
	ValidateStatus func(obj, old T) field.ErrorList
	// ValidateChange and ValidateStatusChange are ValidateUpdate and ValidateStatus of kinds whose rules warn while they
	// judge: the context takes the warnings (k8s.io/apiserver/pkg/warning).
	ValidateChange, ValidateStatusChange func(ctx context.Context, obj, old T) field.ErrorList
	// Warnings are shown to the client after a successful write; at most 120 characters each.
	Warnings func(obj T) []string
	// ChangeWarnings are those that depend on what was there before; old is nil in a create.
	ChangeWarnings func(obj, old T) []string
	// StatusWarnings are those of a write of the status, which has none of the others.
	StatusWarnings func(obj T) []string

	// Spec and Status return pointers to these fields. Status non-nil means that
	// the kind has a status subresource.
	Spec, Status func(obj T) any
	// Resets are the fields that a write of the whole object never changes, as paths with dots. A client that
	// sends them does not become their manager. Nil: status. StatusResets are those of the status subresource;
	// nil: spec.
	Resets, StatusResets []string
	// SplitsStatus: the kind has a status subresource, and its Prepare functions
	// themselves keep spec and status apart, since no field holds them.
	SplitsStatus bool
	// StatusOnCreate: the status in a create is kept (Node: its agent registers with it).
	StatusOnCreate bool
	// Generation: metadata.generation counts changes of the spec.
	Generation bool
	// AllowCreateOnUpdate: PUT creates a missing object.
	AllowCreateOnUpdate bool
	// RequireResourceVersion: an update without resourceVersion is refused.
	RequireResourceVersion bool
	// GracefulDelete reports whether deletion waits for an agent to confirm it; it must then set options.GracePeriodSeconds.
	GracefulDelete func(obj T, options *metav1.DeleteOptions) bool
	// Protected says why an object may not be deleted, by anybody; empty: it may.
	Protected func(obj T) string
	// Bookmark fills in what the objects of bookmarks have, which otherwise are empty.
	Bookmark func(obj T)
	// OneByOne: there is no deleting of a whole collection.
	OneByOne bool
	// OrphanByDefault: dependents are orphaned when the client asks for nothing.
	OrphanByDefault bool
	// OrphanWarning is told to a client whose deletion orphans by default.
	OrphanWarning string
	// NoDependents: what a deletion says of dependents counts for nothing.
	NoDependents bool
	// MarkDeleted changes an object whose deletion was asked for but has to wait (Namespace: its
	// phase). Nothing else of such an object is changed but its deletionTimestamp.
	MarkDeleted func(obj T)
	// ReturnDeleted: a completed deletion answers with the object, not with a Status.
	ReturnDeleted bool
	// Finalizing reports that something outside metadata.finalizers holds the object (Namespace: spec.finalizers).
	Finalizing func(obj T) bool

	Columns []Column[T]
	// Fields are the selectable fields beyond metadata.name and metadata.namespace.
	// Every object yields the same field names.
	Fields func(obj T) fields.Set
	Scale  *Scale[T]
	// CreateOnly: objects are questions that are answered and never stored; nothing but create is served.
	CreateOnly bool
	// ReadOnly: objects are computed for each request; only get and list are served.
	ReadOnly bool
	// Parts are subresources that change a part of the object, like status. One that is
	// called status takes the place of the ordinary one.
	Parts []Part[T]
	// Subresources beyond status, scale and parts, for discovery; rest serves them.
	Subresources []Subresource
	// Verbs are those that discovery tells, in its order; nil: those that are served.
	Verbs []string

	// Schema is the OpenAPI v3 schema of a kind without a Go type, or what v2 can say of
	// it; references are those of v3. Nil: the published type's. The result is the
	// caller's. SchemaID changes whenever it does.
	Schema   func(v2 bool) (*spec.Schema, error)
	SchemaID string

	// StoredAs names the resource whose storage this kind shares under another version;
	// ToStored and FromStored convert. Empty: stored as itself.
	StoredAs schema.GroupResource
	// StorageVersion, if not empty, is the apiVersion under which objects of a custom kind are kept, which discovery tells by its hash.
	StorageVersion string
	ToStored       func(obj T) Object
	FromStored     func(stored Object) T
}

// Column is one column of `kubectl get`. Priority 0 is always shown, 1 with -o wide.
type Column[T Object] struct {
	Name, Type, Format, Description string
	Priority                        int32
	// Cell computes the cell: a string, int64, float64 or bool.
	Cell func(obj T, now time.Time) any
}

// Scale describes the scale subresource (autoscaling/v1 Scale).
type Scale[T Object] struct {
	// Replicas returns the desired number, SetReplicas changes it.
	Replicas       func(obj T) int32
	SetReplicas    func(obj T, replicas int32)
	StatusReplicas func(obj T) int32
	// HasReplicas reports whether the object says how many it wants. Nil: each does.
	HasReplicas func(obj T) bool
	// Paths are where each apiVersion keeps the desired number, for field ownership;
	// an apiVersion without a scale has none. Nil: spec.replicas.
	Paths map[string][]string
	// Selector is the label selector of the pods in its string form.
	Selector func(obj T) string
}

// Part is a subresource that shows the whole object and changes a part of it: get,
// update and patch.
type Part[T Object] struct {
	Name string
	// Resets are the fields that the part never changes, as paths with dots. A client that applies them does not
	// become their manager.
	Resets []string
	// Prepare restores from old what the part may not touch; now is the time of the write.
	Prepare  func(obj, old T, now time.Time)
	Validate func(obj, old T, now time.Time) field.ErrorList
}

// Subresource is a further endpoint below an object.
type Subresource struct {
	Name string
	// Kind is the kind it takes or returns.
	Kind  schema.GroupVersionKind
	Verbs []string
}

// GroupResource is the name under which requests and storage know the kind.
func (k *Kind[T]) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.GroupVersionKind.Group, Resource: k.Plural}
}

// GroupVersionResource is GroupResource with the served version.
func (k *Kind[T]) GroupVersionResource() schema.GroupVersionResource {
	return k.GroupVersionKind.GroupVersion().WithResource(k.Plural)
}

// SingularName is the singular form that kubectl accepts.
func (k *Kind[T]) SingularName() string {
	if k.Singular != "" {
		return k.Singular
	}
	return strings.ToLower(k.GroupVersionKind.Kind)
}

// Namespaced reports whether objects live in a namespace.
func (k *Kind[T]) Namespaced() bool { return !k.ClusterScoped }

// HasStatus reports whether the kind has a status subresource.
func (k *Kind[T]) HasStatus() bool { return k.Status != nil || k.SplitsStatus }

// StorageResource is the resource whose keys hold the kind's objects.
func (k *Kind[T]) StorageResource() schema.GroupResource {
	if k.StoredAs != (schema.GroupResource{}) {
		return k.StoredAs
	}
	return k.GroupResource()
}
