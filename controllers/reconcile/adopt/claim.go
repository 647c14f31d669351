package adopt

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// PatchType is the type of the patches that AdoptPatch and ReleasePatch make.
const PatchType = types.StrategicMergePatchType

// Claims is what Claim decided; the three lists are disjoint.
type Claims[T metav1.Object] struct {
	// Keep are owned and match.
	Keep []T
	// Adopt match, have no controller and are not being deleted.
	Adopt []T
	// Release are owned, match no longer and are not being deleted.
	Release []T
}

// Claim sorts the objects that owner controls and the orphans of its namespace.
// An owner that is being deleted neither adopts nor releases: its dependents
// are the garbage collector's then.
func Claim[T metav1.Object](owner metav1.Object, selector labels.Selector, owned, orphans []T) Claims[T] {
	var c Claims[T]
	dying := owner.GetDeletionTimestamp() != nil
	for _, o := range owned {
		switch {
		case selector.Matches(labels.Set(o.GetLabels())):
			c.Keep = append(c.Keep, o)
		case !dying && o.GetDeletionTimestamp() == nil:
			c.Release = append(c.Release, o)
		}
	}
	if dying {
		return c
	}
	for _, o := range orphans {
		if o.GetDeletionTimestamp() == nil && selector.Matches(labels.Set(o.GetLabels())) {
			c.Adopt = append(c.Adopt, o)
		}
	}
	return c
}

// Reference is the controlling owner reference to owner.
func Reference(owner metav1.Object, kind schema.GroupVersionKind) metav1.OwnerReference {
	return *metav1.NewControllerRef(owner, kind)
}

// AdoptPatch adds owner as the controller of child, and finalizers.
func AdoptPatch(owner metav1.Object, kind schema.GroupVersionKind, child metav1.Object, finalizers ...string) []byte {
	return ownersPatch(child, Reference(owner, kind), "finalizers", finalizers)
}

// ReleasePatch removes owner from the owners of child, and finalizers.
func ReleasePatch(owner, child metav1.Object, finalizers ...string) []byte {
	return ownersPatch(child, map[string]any{"$patch": "delete", "uid": owner.GetUID()}, "$deleteFromPrimitiveList/finalizers", finalizers)
}

func ownersPatch(child metav1.Object, entry any, directive string, finalizers []string) []byte {
	metadata := map[string]any{"uid": child.GetUID(), "ownerReferences": []any{entry}}
	if len(finalizers) > 0 {
		metadata[directive] = finalizers
	}
	patch, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		panic("adopt: a map of strings did not encode: " + err.Error())
	}
	return patch
}
