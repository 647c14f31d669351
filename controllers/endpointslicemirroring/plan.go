package endpointslicemirroring

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/endpointslice/util"
)

// changes are what a pass writes.
type changes struct{ create, update, remove []*discoveryv1.EndpointSlice }

// plan compares the slices that there are with what the Endpoints say.
func plan(endpoints *corev1.Endpoints, have []*discoveryv1.EndpointSlice, want []*part) changes {
	var todo changes
	existing := map[partKey][]*discoveryv1.EndpointSlice{}
	for _, slice := range slices.SortedFunc(slices.Values(have), byName) {
		key := keyOf(slice.AddressType, slice.Ports)
		existing[key] = append(existing[key], slice)
	}
	for _, p := range want {
		of := existing[p.key]
		delete(existing, p.key)
		if len(of) == 0 {
			todo.create = append(todo.create, sliceOf(endpoints, p))
			continue
		}
		todo.remove = append(todo.remove, of[1:]...)
		if next := sliceOf(endpoints, p); !same(endpoints, of[0], next, p) {
			todo.update = append(todo.update, inPlaceOf(of[0], next))
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(existing), partKey.compare) {
		todo.remove = append(todo.remove, existing[key]...)
	}
	todo.recycle()
	return todo
}

// recycle writes new slices over superfluous ones of their family.
func (c *changes) recycle() {
	var create []*discoveryv1.EndpointSlice
	for _, slice := range c.create {
		at := slices.IndexFunc(c.remove, func(old *discoveryv1.EndpointSlice) bool { return old.AddressType == slice.AddressType })
		if at < 0 {
			create = append(create, slice)
			continue
		}
		c.update = append(c.update, inPlaceOf(c.remove[at], slice))
		c.remove = slices.Delete(c.remove, at, at+1)
	}
	c.create = create
}

// inPlaceOf makes a new slice the next version of an old one.
func inPlaceOf(old, next *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	next.Name, next.GenerateName, next.UID, next.ResourceVersion = old.Name, "", old.UID, old.ResourceVersion
	return next
}

// sliceOf is a new slice for a part of the Endpoints.
func sliceOf(endpoints *corev1.Endpoints, p *part) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: endpoints.Name + "-", Namespace: endpoints.Namespace, Labels: map[string]string{}, Annotations: map[string]string{},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(endpoints, corev1.SchemeGroupVersion.WithKind("Endpoints"))},
		},
		AddressType: p.key.family, Ports: p.ports,
	}
	for _, endpoint := range p.endpoints {
		slice.Endpoints = append(slice.Endpoints, *endpoint)
	}
	maps.Copy(slice.Labels, endpoints.Labels)
	slice.Labels[discoveryv1.LabelServiceName] = endpoints.Name
	slice.Labels[discoveryv1.LabelManagedBy] = managedBy
	maps.Copy(slice.Annotations, endpoints.Annotations)
	delete(slice.Annotations, corev1.EndpointsLastChangeTriggerTime)
	delete(slice.Annotations, corev1.LastAppliedConfigAnnotation)
	return slice
}

// same says that a slice needs no update. The order of its endpoints does not matter.
func same(endpoints *corev1.Endpoints, have, want *discoveryv1.EndpointSlice, p *part) bool {
	return apiequality.Semantic.DeepEqual(have.Labels, want.Labels) &&
		apiequality.Semantic.DeepEqual(have.Annotations, want.Annotations) &&
		ownedBy(have, endpoints.UID) && p.holds(have.Endpoints)
}

func ownedBy(slice *discoveryv1.EndpointSlice, uid types.UID) bool {
	return slices.ContainsFunc(slice.OwnerReferences, func(ref metav1.OwnerReference) bool { return ref.UID == uid })
}

// holds says that the endpoints are those of the part.
func (p *part) holds(have []discoveryv1.Endpoint) bool {
	if len(have) != len(p.endpoints) {
		return false
	}
	seen := util.EndpointSet{}
	for i := range have {
		own := have[i].DeepCopy() // the set sorts addresses, and the slice is shared
		if want := p.set.Get(own); want == nil || seen.Has(own) || !util.EndpointsEqualBeyondHash(want, own) {
			return false
		}
		seen.Insert(own)
	}
	return true
}

func byName(a, b *discoveryv1.EndpointSlice) int { return cmp.Compare(a.Name, b.Name) }
