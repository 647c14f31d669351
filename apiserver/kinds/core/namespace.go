package core

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// standardFinalizers are those that need no domain.
var standardFinalizers = []string{string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents}

func namespaces() resource.Kind[*corev1.Namespace] {
	return resource.Kind[*corev1.Namespace]{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Namespace"),
		Plural:           "namespaces",
		ShortNames:       []string{"ns"},
		ClusterScoped:    true,
		OneByOne:         true,
		ReturnDeleted:    true,
		New:              func() *corev1.Namespace { return &corev1.Namespace{} },
		NewList:          func() runtime.Object { return &corev1.NamespaceList{} },
		ValidateName:     validation.NameIsDNSLabel,
		Default:          defaultNamespace,
		PrepareCreate:    prepareNamespaceCreate,
		PrepareUpdate:    prepareNamespaceUpdate,
		Validate:         validateNamespace,
		ValidateStatus:   validateNamespaceStatus,
		Spec:             func(ns *corev1.Namespace) any { return &ns.Spec },
		Status:           func(ns *corev1.Namespace) any { return &ns.Status },
		Finalizing:       func(ns *corev1.Namespace) bool { return len(ns.Spec.Finalizers) > 0 },
		MarkDeleted:      func(ns *corev1.Namespace) { ns.Status.Phase = corev1.NamespaceTerminating },
		Columns: []resource.Column[*corev1.Namespace]{
			column.Name[*corev1.Namespace](),
			column.Text("Status", "The status of the namespace", 0, func(ns *corev1.Namespace) string { return string(ns.Status.Phase) }),
			column.Age[*corev1.Namespace](),
		},
		Fields: func(ns *corev1.Namespace) fields.Set { return fields.Set{"status.phase": string(ns.Status.Phase)} },
		Subresources: []resource.Subresource{
			{Name: "finalize", Kind: corev1.SchemeGroupVersion.WithKind("Namespace"), Verbs: []string{"update"}},
		},
	}
}

func defaultNamespace(ns *corev1.Namespace) {
	if ns.Status.Phase == "" {
		ns.Status.Phase = corev1.NamespaceActive
	}
	// The name is not known yet while generateName waits for its suffix.
	if ns.Name != "" {
		metav1.SetMetaDataLabel(&ns.ObjectMeta, corev1.LabelMetadataName, ns.Name)
	}
}

// prepareNamespaceCreate adds the finalizer that keeps a deleted namespace until
// the namespace controller has emptied it.
func prepareNamespaceCreate(ns *corev1.Namespace) {
	ns.Status = corev1.NamespaceStatus{Phase: corev1.NamespaceActive}
	if !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		ns.Spec.Finalizers = append(ns.Spec.Finalizers, corev1.FinalizerKubernetes)
	}
	if ns.Name != "" {
		metav1.SetMetaDataLabel(&ns.ObjectMeta, corev1.LabelMetadataName, ns.Name)
	}
}

// prepareNamespaceUpdate: finalizers change through the finalize subresource only.
func prepareNamespaceUpdate(ns, old *corev1.Namespace) {
	ns.Spec.Finalizers = old.Spec.Finalizers
}

func validateNamespace(ns *corev1.Namespace) field.ErrorList {
	return validateNamespaceFinalizers(ns.Spec.Finalizers, field.NewPath("spec", "finalizers"))
}

func validateNamespaceFinalizers(finalizers []corev1.FinalizerName, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, name := range finalizers {
		errs = append(errs, validation.ValidateFinalizerName(string(name), path.Index(i))...)
		if !strings.Contains(string(name), "/") && !slices.Contains(standardFinalizers, string(name)) {
			errs = append(
				errs,
				field.Invalid(path.Index(i), string(name), "name is neither a standard finalizer name nor is it fully qualified"),
			)
		}
	}
	return errs
}

func validateNamespaceStatus(ns, _ *corev1.Namespace) field.ErrorList {
	path := field.NewPath("status", "phase")
	phase := ns.Status.Phase
	switch deleting := ns.DeletionTimestamp != nil; {
	case !deleting && phase != corev1.NamespaceActive:
		return field.ErrorList{field.Invalid(path, phase, "may only be 'Active' if `deletionTimestamp` is empty")}
	case deleting && phase != corev1.NamespaceTerminating:
		return field.ErrorList{field.Invalid(path, phase, "may only be 'Terminating' if `deletionTimestamp` is not empty")}
	}
	return nil
}
