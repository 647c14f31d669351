package admission

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/component-helpers/storage/volume"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

const (
	defaultStorageClassAnnotation = "storageclass.kubernetes.io/is-default-class"
	// betaDefaultStorageClassAnnotation is still in use.
	betaDefaultStorageClassAnnotation = "storageclass.beta.kubernetes.io/is-default-class"
	// ingressClassAnnotation named an ingress's class before there was a field.
	ingressClassAnnotation = "kubernetes.io/ingress.class"
)

// defaultStorageClass gives claims that name no class the cluster's default.
type defaultStorageClass struct {
	onCreate
	classes objects[*storagev1.StorageClass]
}

func newDefaultStorageClass(store *storage.Store) defaultStorageClass {
	return defaultStorageClass{
		classes: objectsOf[*storagev1.StorageClass](store, storagev1.SchemeGroupVersion.WithResource("storageclasses")),
	}
}

// Admit implements admission.MutationInterface.
func (d defaultStorageClass) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	claim, ok := a.GetObject().(*corev1.PersistentVolumeClaim)
	if !ok || a.GetSubresource() != "" || volume.PersistentVolumeClaimHasClass(claim) {
		return nil
	}
	classes, err := d.classes.in(ctx, "")
	if class := newestDefault(classes, defaultStorageClassAnnotation, betaDefaultStorageClassAnnotation); class != nil {
		claim.Spec.StorageClassName = new((*class).Name)
	}
	return err
}

// defaultIngressClass gives ingresses that name no class the cluster's default.
type defaultIngressClass struct {
	onCreate
	classes objects[*networkingv1.IngressClass]
}

func newDefaultIngressClass(store *storage.Store) defaultIngressClass {
	return defaultIngressClass{
		classes: objectsOf[*networkingv1.IngressClass](store, networkingv1.SchemeGroupVersion.WithResource("ingressclasses")),
	}
}

// Admit implements admission.MutationInterface.
func (d defaultIngressClass) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	ingress, ok := a.GetObject().(*networkingv1.Ingress)
	if !ok || a.GetSubresource() != "" || ingress.Spec.IngressClassName != nil {
		return nil
	}
	if _, named := ingress.Annotations[ingressClassAnnotation]; named {
		return nil
	}
	classes, err := d.classes.in(ctx, "")
	if class := newestDefault(classes, networkingv1.AnnotationIsDefaultIngressClass); class != nil {
		ingress.Spec.IngressClassName = new((*class).Name)
	}
	return err
}

// newestDefault is the class annotated as the default; of several, which happens
// while one takes over from another, the newest, then the first by name.
func newestDefault[T resource.Object](classes []T, annotations ...string) *T {
	var newest *T
	for i, c := range classes {
		if !annotated(c, annotations) {
			continue
		}
		if newest == nil || (*newest).GetCreationTimestamp().Time.Before(c.GetCreationTimestamp().Time) {
			newest = &classes[i]
		}
	}
	return newest
}

func annotated(obj resource.Object, annotations []string) bool {
	for _, name := range annotations {
		if strings.EqualFold(obj.GetAnnotations()[name], "true") {
			return true
		}
	}
	return false
}
