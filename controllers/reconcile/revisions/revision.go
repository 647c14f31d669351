package revisions

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/setpoint-io/setpoint/controllers/reconcile/adopt"
)

// Data is what a revision holds: the strategic merge patch that brings a template
// back. It is upstream's to the byte, since equal data is how a revision is found.
func Data(template *corev1.PodTemplateSpec) ([]byte, error) {
	whole, err := json.Marshal(template)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(whole, &fields); err != nil {
		return nil, err
	}
	fields["$patch"] = "replace"
	return json.Marshal(map[string]any{"spec": map[string]any{"template": fields}})
}

// Of is what a new revision is made from.
type Of struct {
	// Owner controls the revision and gives it its annotations; Kind is its kind.
	Owner metav1.Object
	Kind  schema.GroupVersionKind
	// Labels are those of the revision, beside the hash under HashLabel.
	Labels    map[string]string
	HashLabel string
	Hash      string
	// Name of the revision.
	Name string
	// Data is the template, see Data.
	Data []byte
	// Number orders the revisions of an owner, see Next.
	Number int64
}

// New is the revision of a template. It is not written yet.
func New(of Of) *appsv1.ControllerRevision {
	labels := maps.Clone(of.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[of.HashLabel] = of.Hash
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name:            of.Name,
			Namespace:       of.Owner.GetNamespace(),
			Labels:          labels,
			Annotations:     maps.Clone(of.Owner.GetAnnotations()),
			OwnerReferences: []metav1.OwnerReference{adopt.Reference(of.Owner, of.Kind)},
		},
		Data:     runtime.RawExtension{Raw: of.Data},
		Revision: of.Number,
	}
}

// Equal returns the revisions that hold data, in their order.
func Equal(list []*appsv1.ControllerRevision, data []byte) []*appsv1.ControllerRevision {
	var equal []*appsv1.ControllerRevision
	for _, r := range list {
		if bytes.Equal(r.Data.Raw, data) {
			equal = append(equal, r)
		}
	}
	return equal
}

// Sort orders revisions by number, those with the same one by age and name.
func Sort(list []*appsv1.ControllerRevision) {
	slices.SortStableFunc(list, func(a, b *appsv1.ControllerRevision) int {
		if a.Revision != b.Revision {
			return int(min(1, max(-1, a.Revision-b.Revision)))
		}
		if c := a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// Next is the number of a revision that is newer than all of the list.
func Next(list []*appsv1.ControllerRevision) int64 {
	newest := int64(0)
	for _, r := range list {
		newest = max(newest, r.Revision)
	}
	return newest + 1
}

// Surplus are the oldest revisions that make the list longer than limit, without
// those in use; a nil inUse means that none is.
func Surplus(list []*appsv1.ControllerRevision, limit int, inUse func(*appsv1.ControllerRevision) bool) []*appsv1.ControllerRevision {
	excess := len(list) - limit
	if excess <= 0 {
		return nil
	}
	sorted := slices.Clone(list)
	Sort(sorted)
	var surplus []*appsv1.ControllerRevision
	for _, r := range sorted {
		if len(surplus) < excess && (inUse == nil || !inUse(r)) {
			surplus = append(surplus, r)
		}
	}
	return surplus
}
