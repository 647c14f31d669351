package crdstatus

import (
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/transport"
)

type condition = apiextensionsv1.CustomResourceDefinitionCondition

// plan is the status that a definition should have beside the others of its group.
func plan(d *definition, others []*definition) apiextensionsv1.CustomResourceDefinitionStatus {
	next := d.DeepCopy()
	names, accepted := acceptNames(d, others)
	next.Status.AcceptedNames = names
	set(next, accepted)
	set(next, established(d, accepted.Status == apiextensionsv1.ConditionTrue))
	if c := nonStructural(d); c != nil {
		set(next, *c)
	} else {
		apihelpers.RemoveCRDCondition(next, apiextensionsv1.NonStructuralSchema)
	}
	if c := approval(d); c != nil {
		set(next, *c)
	}
	return next.Status
}

// set changes a condition only if it says something new; its time moves with its status.
func set(d *definition, c condition) {
	if !apihelpers.IsCRDConditionEquivalent(&c, apihelpers.FindCRDCondition(d, c.Type)) {
		apihelpers.SetCRDCondition(d, c)
	}
}

// acceptNames gives a definition those of the names it wants that nobody has.
func acceptNames(d *definition, others []*definition) (apiextensionsv1.CustomResourceDefinitionNames, condition) {
	resources, kinds := sets.New[string](), sets.New[string]()
	for _, other := range slices.Concat(others, []*definition{d}) {
		n := other.Status.AcceptedNames
		resources.Insert(n.Plural, n.Singular).Insert(n.ShortNames...)
		kinds.Insert(n.Kind, n.ListKind)
	}
	wanted, names := d.Spec.Names, d.Status.AcceptedNames
	bad := condition{
		Type:    apiextensionsv1.NamesAccepted,
		Status:  apiextensionsv1.ConditionTrue,
		Reason:  "NoConflicts",
		Message: "no conflicts found",
	}
	conflict := func(reason string, err error) bool {
		if err != nil {
			bad.Status, bad.Reason, bad.Message = apiextensionsv1.ConditionFalse, reason, err.Error()
		}
		return err != nil
	}
	single := func(reason, wanted string, has *string, taken sets.Set[string]) {
		if !conflict(reason, free(wanted, *has, taken)) {
			*has = wanted
		}
	}
	// The last conflict in this order, which is upstream's, is the one that is told.
	single("PluralConflict", wanted.Plural, &names.Plural, resources)
	single("SingularConflict", wanted.Singular, &names.Singular, resources)
	if !conflict("ShortNamesConflict", freeShortNames(d, resources)) {
		names.ShortNames = wanted.ShortNames
	}
	single("KindConflict", wanted.Kind, &names.Kind, kinds)
	single("ListKindConflict", wanted.ListKind, &names.ListKind, kinds)
	names.Categories = wanted.Categories
	return names, bad
}

// freeShortNames reports which short names a definition may not have.
func freeShortNames(d *definition, taken sets.Set[string]) error {
	var errs []error
	for _, short := range d.Spec.Names.ShortNames {
		if !slices.Contains(d.Status.AcceptedNames.ShortNames, short) {
			errs = append(errs, free(short, "", taken))
		}
	}
	return utilerrors.NewAggregate(errs)
}

// free reports who may not have a name: it is neither his nor fresh.
func free(wanted, has string, taken sets.Set[string]) error {
	if wanted == has || !taken.Has(wanted) {
		return nil
	}
	return fmt.Errorf("%q is already in use", wanted)
}

// established: once it is, it stays so, whatever becomes of the names.
func established(d *definition, accepted bool) condition {
	if old := apihelpers.FindCRDCondition(d, apiextensionsv1.Established); old != nil && old.Status == apiextensionsv1.ConditionTrue {
		return *old
	}
	if !accepted {
		return condition{
			Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse,
			Reason: "NotAccepted", Message: "not all names are accepted",
		}
	}
	if !hasValidCABundle(d) {
		return condition{
			Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse,
			Reason: "InvalidCABundle", Message: "The conversion webhook CABundle is invalid",
		}
	}
	return condition{
		Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue,
		Reason: "InitialNamesAccepted", Message: "the initial names have been accepted",
	}
}

// hasValidCABundle reports whether a client of the conversion webhook could be made with what the definition says.
func hasValidCABundle(d *definition) bool {
	conversion := d.Spec.Conversion
	if conversion == nil || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return true
	}
	bundle := transport.TLSConfig{CAData: conversion.Webhook.ClientConfig.CABundle}
	_, err := transport.TLSConfigFor(&transport.Config{TLS: bundle})
	return err == nil
}

// nonStructural is the condition of a definition of old, whose schema breaks the rules.
func nonStructural(d *definition) *condition {
	c := &condition{Type: apiextensionsv1.NonStructuralSchema, Status: apiextensionsv1.ConditionTrue, Reason: "Violations"}
	var errs field.ErrorList
	if d.Spec.PreserveUnknownFields {
		errs = append(errs, field.Invalid(field.NewPath("spec", "preserveUnknownFields"), true, "must be false"))
	}
	for i, v := range d.Spec.Versions {
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			continue
		}
		var in apiextensions.CustomResourceValidation
		err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(v.Schema.DeepCopy(), &in, nil)
		if err != nil {
			continue // validation refuses it
		}
		s, err := structuralschema.NewStructural(in.OpenAPIV3Schema)
		if err != nil {
			c.Status, c.Reason = apiextensionsv1.ConditionUnknown, "StructuralError"
			c.Message = fmt.Sprintf("failed to check validation schema for version %s: %v", v.Name, err)
			return c
		}
		path := field.NewPath("spec", "versions").Index(i).Child("schema", "openAPIV3Schema")
		errs = append(errs, structuralschema.ValidateStructural(path, s)...)
	}
	if len(errs) == 0 {
		return nil
	}
	c.Message = errs.ToAggregate().Error()
	return c
}

// approval is the condition of groups below k8s.io and kubernetes.io, which need the
// approval of that community.
func approval(d *definition) *condition {
	if !apihelpers.IsProtectedCommunityGroup(d.Spec.Group) {
		return nil
	}
	c := &condition{Type: apiextensionsv1.KubernetesAPIApprovalPolicyConformant, Status: apiextensionsv1.ConditionFalse}
	state, message := apihelpers.GetAPIApprovalState(d.Annotations)
	c.Message = message
	switch state {
	case apihelpers.APIApproved:
		c.Status, c.Reason = apiextensionsv1.ConditionTrue, "ApprovedAnnotation"
	case apihelpers.APIApprovalBypassed:
		c.Reason = "UnapprovedAnnotation"
	case apihelpers.APIApprovalMissing:
		c.Reason = "MissingAnnotation"
	default:
		c.Reason = "InvalidAnnotation"
	}
	return c
}
