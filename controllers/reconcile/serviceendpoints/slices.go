package serviceendpoints

import (
	"maps"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/endpointslice/util"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// ByService files each slice under the Service and the manager that its labels name. A
// Service's slices are found without looking at all others of its namespace.
var ByService = reconcile.Index{Name: "setpoint/service", Keys: func(o metav1.Object) []string {
	labels := o.GetLabels()
	return []string{serviceValue(labels[discoveryv1.LabelManagedBy], serviceOf(o))}
}}

func serviceValue(managedBy string, service reconcile.Key) string {
	return managedBy + " " + service.String()
}

func serviceOf(slice metav1.Object) reconcile.Key {
	return reconcile.Key{Namespace: slice.GetNamespace(), Name: slice.GetLabels()[discoveryv1.LabelServiceName]}
}

// Slices are those of one manager. It is one term's.
type Slices struct {
	// Tracker knows the generations that were written here.
	Tracker   *util.EndpointSliceTracker
	managedBy string
	stored    reconcile.Cache[*discoveryv1.EndpointSlice]
}

// NewSlices are the slices that carry the label of a manager. The cache is declared By(ByService).
func NewSlices(managedBy string, stored reconcile.Cache[*discoveryv1.EndpointSlice]) *Slices {
	return &Slices{util.NewEndpointSliceTracker(), managedBy, stored}
}

// Of lists the slices of a Service that are not being deleted.
func (s *Slices) Of(service reconcile.Key) ([]*discoveryv1.EndpointSlice, error) {
	all, err := s.stored.ByIndex(ByService, serviceValue(s.managedBy, service))
	if err != nil {
		return nil, err
	}
	live := all[:0]
	for _, slice := range all {
		if slice.DeletionTimestamp == nil {
			live = append(live, slice)
		}
	}
	return live, nil
}

// Changed maps a slice that somebody else changed to its Service, and to the one that it
// belonged to.
func (s *Slices) Changed(before, after metav1.Object) []reconcile.Key {
	was, _ := before.(*discoveryv1.EndpointSlice)
	is, _ := after.(*discoveryv1.EndpointSlice)
	switch {
	case is == nil:
		return s.gone(was)
	case was != nil && (s.ours(was) != s.ours(is) || serviceOf(was) != serviceOf(is)):
		return append(s.gone(was), s.keysOf(is)...)
	case s.ours(is) && (s.Tracker.ShouldSync(is) || relabelled(was, is)):
		return s.keysOf(is)
	}
	return nil
}

// relabelled says that only metadata changed, which the generation does not tell.
func relabelled(was, is *discoveryv1.EndpointSlice) bool {
	return was != nil && was.Generation == is.Generation &&
		(!maps.Equal(was.Labels, is.Labels) || !maps.Equal(was.Annotations, is.Annotations))
}

// gone forgets a slice that a Service has no more, unless its deletion was expected.
func (s *Slices) gone(slice *discoveryv1.EndpointSlice) []reconcile.Key {
	if slice == nil || !s.ours(slice) || s.Tracker.Has(slice) && s.Tracker.HandleDeletion(slice) {
		return nil
	}
	return s.keysOf(slice)
}

func (s *Slices) ours(slice *discoveryv1.EndpointSlice) bool {
	return slice.Labels[discoveryv1.LabelManagedBy] == s.managedBy
}

// keysOf is the Service of a slice, if it is ours and has one.
func (s *Slices) keysOf(slice *discoveryv1.EndpointSlice) []reconcile.Key {
	if key := serviceOf(slice); s.ours(slice) && key.Name != "" {
		return []reconcile.Key{key}
	}
	return nil
}
