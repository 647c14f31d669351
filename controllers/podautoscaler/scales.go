package podautoscaler

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/scale"
)

// target is a scale and where it was found.
type target struct {
	resource schema.GroupResource
	scale    *autoscalingv1.Scale
}

// scales reads and writes scale subresources.
type scales interface {
	find(ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler) (target, error)
	again(ctx context.Context, t target) (*autoscalingv1.Scale, error)
	update(ctx context.Context, t target, next *autoscalingv1.Scale) error
}

type scaleRequests struct {
	client scale.ScalesGetter
	kinds  *kinds
}

// find tries each resource of the kind; the first fault counts if none has a scale.
func (s *scaleRequests) find(ctx context.Context, hpa *autoscalingv2.HorizontalPodAutoscaler) (target, error) {
	ref := hpa.Spec.ScaleTargetRef
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return target{}, err
	}
	mappings, err := s.kinds.RESTMappings(schema.GroupKind{Group: gv.Group, Kind: ref.Kind})
	if err != nil {
		return target{}, err
	}
	var first error
	for _, m := range mappings {
		resource := m.Resource.GroupResource()
		found, err := s.client.Scales(hpa.Namespace).Get(ctx, resource, ref.Name, metav1.GetOptions{})
		if err == nil {
			return target{resource, found}, nil
		}
		if first == nil {
			first = err
		}
	}
	if first == nil {
		first = fmt.Errorf("unrecognized resource")
	}
	return target{}, first
}

func (s *scaleRequests) again(ctx context.Context, t target) (*autoscalingv1.Scale, error) {
	return s.client.Scales(t.scale.Namespace).Get(ctx, t.resource, t.scale.Name, metav1.GetOptions{})
}

func (s *scaleRequests) update(ctx context.Context, t target, next *autoscalingv1.Scale) error {
	_, err := s.client.Scales(next.Namespace).Update(ctx, t.resource, next, metav1.UpdateOptions{})
	return err
}
