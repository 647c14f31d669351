package rest

import (
	"context"
	"fmt"
	"strings"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8smanagedfields "k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager"
	"k8s.io/apiserver/pkg/warning"

	"github.com/setpoint-io/setpoint/apiserver/managedfields"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// mutate lets admission change the object. The plugins get what upstream hands them.
func (p *plainWrite) mutate(ctx context.Context, a admission.Attributes) error {
	mutation, ok := p.admit.(admission.MutationInterface)
	if !ok || !mutation.Handles(a.GetOperation()) {
		return nil
	}
	obj := a.GetObject().(resource.Object)
	before := obj.GetManagedFields()
	if err := mutation.Admit(ctx, a, p.scope); err != nil {
		return err
	}
	p.keepManagedFields(ctx, obj, before)
	p.dropRepeatedOwners(obj)
	return nil
}

// keepManagedFields takes back what admission made of managedFields, if that is invalid.
func (p *plainWrite) keepManagedFields(ctx context.Context, obj resource.Object, before []metav1.ManagedFieldsEntry) {
	if managedfields.Same(before, obj.GetManagedFields()) {
		return
	}
	if err := k8smanagedfields.ValidateManagedFields(obj.GetManagedFields()); err != nil {
		obj.SetManagedFields(before)
		warning.AddWarning(ctx, "", fmt.Sprintf(fieldmanager.InvalidManagedFieldsAfterMutatingAdmissionWarningFormat, err.Error()))
	}
}

func repeatsOwners(obj resource.Object) bool {
	refs := obj.GetOwnerReferences()
	for i := range refs {
		if ownerAmong(refs[:i], refs[i]) {
			return true
		}
	}
	return false
}

func ownerAmong(refs []metav1.OwnerReference, ref metav1.OwnerReference) bool {
	for i := range refs {
		if refs[i].UID == ref.UID && apiequality.Semantic.DeepEqual(refs[i], ref) {
			return true
		}
	}
	return false
}

// dropRepeatedOwners removes what admission has added twice, with a warning.
func (p *plainWrite) dropRepeatedOwners(obj resource.Object) {
	if !repeatsOwners(obj) {
		return
	}
	var kept []metav1.OwnerReference
	var repeated []string
	for _, ref := range obj.GetOwnerReferences() {
		if ownerAmong(kept, ref) {
			repeated = append(repeated, string(ref.UID))
		} else {
			kept = append(kept, ref)
		}
	}
	obj.SetOwnerReferences(kept)
	warning.AddWarning(p.r.Context(), "", fmt.Sprintf(handlers.DuplicateOwnerReferencesAfterMutatingAdmissionWarningFormat, strings.Join(repeated, ", ")))
}
