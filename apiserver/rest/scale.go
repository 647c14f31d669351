package rest

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/rest/table"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// scaleStore serves the scale subresource of a kind: a view of its replicas.
type scaleStore struct {
	store *Store
	rest.TableConvertor
}

var _ rest.Patcher = scaleStore{}

func newScaleStore(s *Store) scaleStore {
	return scaleStore{store: s, TableConvertor: table.New(&resource.Any{Columns: scaleColumns()}, s.table.Now)}
}

func scaleColumns() []resource.Column[resource.Object] {
	meta, spec, status := metav1.ObjectMeta{}.SwaggerDoc(), autoscalingv1.ScaleSpec{}.SwaggerDoc(), autoscalingv1.ScaleStatus{}.SwaggerDoc()
	return []resource.Column[resource.Object]{
		{Name: "Name", Type: "string", Description: meta["name"], Cell: func(o resource.Object, _ time.Time) any { return o.GetName() }},
		{Name: "Desired", Type: "integer", Description: spec["replicas"], Cell: func(o resource.Object, _ time.Time) any {
			return int64(o.(*autoscalingv1.Scale).Spec.Replicas)
		}},
		{Name: "Available", Type: "integer", Description: status["replicas"], Cell: func(o resource.Object, _ time.Time) any {
			return int64(o.(*autoscalingv1.Scale).Status.Replicas)
		}},
		{Name: "Age", Type: "string", Description: meta["creationTimestamp"], Cell: func(o resource.Object, now time.Time) any {
			return duration.HumanDuration(now.Sub(o.GetCreationTimestamp().Time))
		}},
	}
}

// New implements rest.Storage.
func (s scaleStore) New() runtime.Object { return &autoscalingv1.Scale{} }

// Destroy implements rest.Storage.
func (s scaleStore) Destroy() {}

// Get implements rest.Getter.
func (s scaleStore) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	obj, err := s.store.Get(ctx, name, options)
	if err != nil {
		return nil, err
	}
	found := obj.(*storage.Cached).Object()
	if s.lacksReplicas(found) {
		return nil, apierrors.NewInternalError(fmt.Errorf("the spec replicas field %q does not exist", s.replicasField()))
	}
	return s.scaleOf(found)
}

func (s scaleStore) lacksReplicas(obj resource.Object) bool {
	scale := s.store.kind.Scale
	return scale.HasReplicas != nil && !scale.HasReplicas(obj)
}

// replicasField is where the kind keeps the desired number, as its definition says it.
func (s scaleStore) replicasField() string {
	return "." + strings.Join(s.store.kind.Scale.Paths[s.store.kind.GroupVersionKind.GroupVersion().String()], ".")
}

func (s scaleStore) scaleOf(obj resource.Object) (*autoscalingv1.Scale, error) {
	entries, err := s.handler(obj).ToSubresource()
	if err != nil {
		return nil, err
	}
	kind := s.store.kind.Scale
	return &autoscalingv1.Scale{
		ObjectMeta: metav1.ObjectMeta{
			Name: obj.GetName(), Namespace: obj.GetNamespace(), UID: obj.GetUID(),
			ResourceVersion: obj.GetResourceVersion(), CreationTimestamp: obj.GetCreationTimestamp(), ManagedFields: entries,
		},
		Spec:   autoscalingv1.ScaleSpec{Replicas: kind.Replicas(obj)},
		Status: autoscalingv1.ScaleStatus{Replicas: kind.StatusReplicas(obj), Selector: kind.Selector(obj)},
	}, nil
}

// handler carries the ownership of replicas between the object and its scale.
func (s scaleStore) handler(obj resource.Object) *managedfields.ScaleHandler {
	gv := s.store.kind.GroupVersionKind.GroupVersion()
	paths := managedfields.ResourcePathMappings{gv.String(): fieldpath.MakePathOrDie("spec", "replicas")}
	for version, names := range s.store.kind.Scale.Paths {
		paths[version] = nil
		for _, name := range names {
			paths[version] = append(paths[version], fieldpath.PathElement{FieldName: &name})
		}
	}
	return managedfields.NewScaleHandler(obj.GetManagedFields(), gv, paths)
}

// Update implements rest.Updater.
func (s scaleStore) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo,
	validateCreate rest.ValidateObjectFunc, validateUpdate rest.ValidateObjectUpdateFunc, _ bool,
	options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	obj, _, err := s.store.Update(ctx, name, &scaleUpdate{scaleStore: s, scale: info, validate: validateUpdate}, nil, nil, false, options)
	if err != nil {
		return nil, false, err
	}
	scale, err := s.scaleOf(obj.(resource.Object))
	return scale, false, err
}

// noReplicas marks the scale of an object that does not say how many it wants.
const noReplicas = math.MinInt32

// scaleUpdate turns an update of the scale into one of the object.
type scaleUpdate struct {
	scaleStore
	scale    rest.UpdatedObjectInfo
	validate rest.ValidateObjectUpdateFunc
}

// Preconditions implements rest.UpdatedObjectInfo.
func (u *scaleUpdate) Preconditions() *metav1.Preconditions { return u.scale.Preconditions() }

// UpdatedObject implements rest.UpdatedObjectInfo.
func (u *scaleUpdate) UpdatedObject(ctx context.Context, o runtime.Object) (runtime.Object, error) {
	obj := o.DeepCopyObject().(resource.Object)
	old, err := u.scaleOf(obj)
	if err != nil {
		return nil, err
	}
	if u.lacksReplicas(obj) {
		old.Spec.Replicas = noReplicas
	}
	updated, err := u.scale.UpdatedObject(ctx, old.DeepCopy())
	if err != nil {
		return nil, err
	}
	scale, ok := updated.(*autoscalingv1.Scale)
	if !ok {
		return nil, apierrors.NewBadRequest("expected input object type to be Scale")
	}
	if scale.Spec.Replicas == noReplicas {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the spec replicas field %q cannot be empty", u.replicasField()))
	}
	if errs := validateScale(scale); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: "autoscaling", Kind: "Scale"}, scale.Name, errs)
	}
	if u.validate != nil {
		if err := u.validate(ctx, scale, old); err != nil {
			return nil, err
		}
	}
	return obj, u.transfer(obj, scale)
}

func (u *scaleUpdate) transfer(obj resource.Object, scale *autoscalingv1.Scale) error {
	entries, err := u.handler(obj).ToParent(scale.ManagedFields)
	if err != nil {
		return err
	}
	u.store.kind.Scale.SetReplicas(obj, scale.Spec.Replicas)
	obj.SetManagedFields(entries)
	if scale.ResourceVersion != "" {
		obj.SetResourceVersion(scale.ResourceVersion)
	}
	return nil
}

func validateScale(scale *autoscalingv1.Scale) field.ErrorList {
	if scale.Spec.Replicas >= 0 {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("spec", "replicas"), scale.Spec.Replicas, "must be greater than or equal to 0")}
}
