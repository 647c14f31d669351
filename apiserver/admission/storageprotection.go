package admission

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// protectionFinalizers keep storage until nobody uses it any more, which
// controllers/storageprotection finds out.
var protectionFinalizers = map[schema.GroupResource]string{
	corev1.Resource("persistentvolumeclaims"):     "kubernetes.io/pvc-protection",
	corev1.Resource("persistentvolumes"):          "kubernetes.io/pv-protection",
	storagev1.Resource("volumeattributesclasses"): "kubernetes.io/vac-protection",
}

// storageObjectInUseProtection puts them on what is created.
type storageObjectInUseProtection struct{ onCreate }

// Admit implements admission.MutationInterface.
func (storageObjectInUseProtection) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	finalizer := protectionFinalizers[a.GetResource().GroupResource()]
	o, ok := a.GetObject().(resource.Object)
	if finalizer == "" || !ok || a.GetSubresource() != "" || slices.Contains(o.GetFinalizers(), finalizer) {
		return nil
	}
	o.SetFinalizers(append(o.GetFinalizers(), finalizer))
	return nil
}
