package clusterobjects

import (
	"context"
	"strconv"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
)

// fromCache is for lists, as cached is for single objects.
var fromCache = metav1.ListOptions{ResourceVersion: "0"}

func ensurePriorityClasses(ctx context.Context, client kubernetes.Interface, wanted []*schedulingv1.PriorityClass) error {
	classes := client.SchedulingV1().PriorityClasses()
	stored, err := classes.List(ctx, fromCache)
	if err != nil {
		return err
	}
	return ensureAll(ctx, classes, pointers(stored.Items), wanted, nil)
}

func ensureLevels(ctx context.Context, client kubernetes.Interface, wanted []*flowcontrolv1.PriorityLevelConfiguration) error {
	levels := client.FlowcontrolV1().PriorityLevelConfigurations()
	stored, err := levels.List(ctx, fromCache)
	if err != nil {
		return err
	}
	return ensureAll(ctx, levels, pointers(stored.Items), wanted, revisedLevel)
}

func ensureSchemas(ctx context.Context, client kubernetes.Interface, wanted []*flowcontrolv1.FlowSchema) error {
	schemas := client.FlowcontrolV1().FlowSchemas()
	stored, err := schemas.List(ctx, fromCache)
	if err != nil {
		return err
	}
	return ensureAll(ctx, schemas, pointers(stored.Items), wanted, revisedSchema)
}

// objectClient is the part of a typed client that makes objects what they should be.
type objectClient[T any] interface {
	Create(ctx context.Context, obj T, options metav1.CreateOptions) (T, error)
	Update(ctx context.Context, obj T, options metav1.UpdateOptions) (T, error)
}

type clusterObject interface {
	metav1.Object
	runtime.Object
}

// ensureAll creates what is missing of wanted. revised returns a stored object as it
// should be, or false if it may stay; a nil function means that all may.
func ensureAll[T clusterObject](
	ctx context.Context,
	client objectClient[T],
	stored, wanted []T,
	revised func(stored, wanted T) (T, bool),
) error {
	byName := map[string]T{}
	for _, obj := range stored {
		byName[obj.GetName()] = obj
	}
	for _, want := range wanted {
		have, found := byName[want.GetName()]
		if !found {
			// Encoders write to what they encode.
			if err := created(client.Create(ctx, want.DeepCopyObject().(T), metav1.CreateOptions{})); err != nil {
				return err
			}
			continue
		}
		if revised == nil {
			continue
		}
		if changed, needed := revised(have, want); needed {
			if _, err := client.Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
				return err
			}
		}
	}
	return nil
}

// created is the error of a creation, if it is one: what is there was made by another.
func created[T any](_ T, err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// maintained reports whether the cluster keeps the spec of a suggested object: an
// administrator says so by an annotation, else as long as he has changed nothing.
func maintained(obj metav1.Object) bool {
	keep, err := strconv.ParseBool(obj.GetAnnotations()[flowcontrolv1.AutoUpdateAnnotationKey])
	if err != nil {
		return obj.GetGeneration() == 1
	}
	return keep
}

// revisedLevel leaves the shares of the exempt level to the administrator.
func revisedLevel(have, want *flowcontrolv1.PriorityLevelConfiguration) (*flowcontrolv1.PriorityLevelConfiguration, bool) {
	if want.Name == flowcontrolv1.PriorityLevelConfigurationNameExempt || !maintained(have) ||
		apiequality.Semantic.DeepEqual(have.Spec, want.Spec) {
		return nil, false
	}
	changed := have.DeepCopy()
	want.Spec.DeepCopyInto(&changed.Spec)
	return changed, true
}

func revisedSchema(have, want *flowcontrolv1.FlowSchema) (*flowcontrolv1.FlowSchema, bool) {
	if !maintained(have) || apiequality.Semantic.DeepEqual(have.Spec, want.Spec) {
		return nil, false
	}
	changed := have.DeepCopy()
	want.Spec.DeepCopyInto(&changed.Spec)
	return changed, true
}

func pointers[T any](items []T) []*T {
	list := make([]*T, len(items))
	for i := range items {
		list[i] = &items[i]
	}
	return list
}
