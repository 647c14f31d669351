package reviews

import (
	"errors"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// attributesOf is the request that is asked about. What cannot be read of its
// selectors is left out, which asks for more than was meant, and told.
func attributesOf(
	who user.Info,
	spec *authorizationv1.SubjectAccessReviewSpec,
) (attributes authorizer.AttributesRecord, problems []string) {
	if asked := spec.NonResourceAttributes; asked != nil {
		return authorizer.AttributesRecord{User: who, Path: asked.Path, Verb: asked.Verb}, nil
	}
	asked := spec.ResourceAttributes
	a := authorizer.AttributesRecord{
		User: who, Verb: asked.Verb, Namespace: asked.Namespace, Name: asked.Name,
		APIGroup: asked.Group, APIVersion: asked.Version, Resource: asked.Resource, Subresource: asked.Subresource,
		ResourceRequest: true,
	}
	if a.APIVersion == "" {
		a.APIVersion = "*"
	}
	if s := asked.FieldSelector; s != nil {
		a.FieldSelectorRequirements, a.FieldSelectorParsingErr = fieldRequirements(s)
		problems = append(problems, selectorProblem("field", len(a.FieldSelectorRequirements), a.FieldSelectorParsingErr)...)
	}
	if s := asked.LabelSelector; s != nil {
		a.LabelSelectorRequirements, a.LabelSelectorParsingErr = labelRequirements(s)
		problems = append(problems, selectorProblem("label", len(a.LabelSelectorRequirements), a.LabelSelectorParsingErr)...)
	}
	return a, problems
}

func selectorProblem(which string, understood int, err error) []string {
	switch {
	case err == nil:
		return nil
	case understood > 0:
		return []string{"spec.resourceAttributes." + which + "Selector partially ignored due to parse error"}
	default:
		return []string{"spec.resourceAttributes." + which + "Selector ignored due to parse error"}
	}
}

var labelOperators = map[metav1.LabelSelectorOperator]selection.Operator{
	metav1.LabelSelectorOpIn:           selection.In,
	metav1.LabelSelectorOpNotIn:        selection.NotIn,
	metav1.LabelSelectorOpExists:       selection.Exists,
	metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
}

func labelRequirements(s *authorizationv1.LabelSelectorAttributes) (labels.Requirements, error) {
	if s.RawSelector != "" {
		parsed, err := labels.Parse(s.RawSelector)
		if err != nil {
			return nil, err
		}
		requirements, _ := parsed.Requirements()
		return requirements, nil
	}
	var understood labels.Requirements
	var errs []error
	for _, wanted := range s.Requirements {
		operator, ok := labelOperators[wanted.Operator]
		if !ok {
			errs = append(errs, fmt.Errorf("%q is not a valid label selector operator", wanted.Operator))
			continue
		}
		requirement, err := labels.NewRequirement(wanted.Key, operator, wanted.Values)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		understood = append(understood, *requirement)
	}
	return understood, errors.Join(errs...)
}

// fieldOperators are those of field selectors in requests, which have one value.
var fieldOperators = map[metav1.FieldSelectorOperator]selection.Operator{
	metav1.FieldSelectorOpIn:    selection.Equals,
	metav1.FieldSelectorOpNotIn: selection.NotEquals,
}

func fieldRequirements(s *authorizationv1.FieldSelectorAttributes) (fields.Requirements, error) {
	if s.RawSelector != "" {
		parsed, err := fields.ParseSelector(s.RawSelector)
		if err != nil {
			return nil, err
		}
		return parsed.Requirements(), nil
	}
	var understood fields.Requirements
	var errs []error
	for _, wanted := range s.Requirements {
		operator, ok := fieldOperators[wanted.Operator]
		if !ok || len(wanted.Values) != 1 {
			errs = append(errs, fmt.Errorf("fieldSelectors do not support %v with %d values", wanted.Operator, len(wanted.Values)))
			continue
		}
		understood = append(understood, fields.Requirement{Field: wanted.Key, Operator: operator, Value: wanted.Values[0]})
	}
	return understood, errors.Join(errs...)
}

func validateSelectors(asked *authorizationv1.ResourceAttributes, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s := asked.FieldSelector; s != nil {
		at := path.Child("fieldSelector")
		errs = append(errs, validateSelector(s.RawSelector, len(s.Requirements), at)...)
		for i, r := range s.Requirements {
			errs = append(errs, metav1validation.ValidateFieldSelectorRequirement(
				r,
				metav1validation.FieldSelectorValidationOptions{
					AllowUnknownOperatorInRequirement: true,
				},
				at.Child("requirements").Index(i),
			)...)
		}
	}
	if s := asked.LabelSelector; s != nil {
		at := path.Child("labelSelector")
		errs = append(errs, validateSelector(s.RawSelector, len(s.Requirements), at)...)
		for i, r := range s.Requirements {
			errs = append(errs, metav1validation.ValidateLabelSelectorRequirement(
				r,
				metav1validation.LabelSelectorValidationOptions{
					AllowUnknownOperatorInRequirement: true,
				},
				at.Child("requirements").Index(i),
			)...)
		}
	}
	return errs
}

func validateSelector(raw string, requirements int, path *field.Path) field.ErrorList {
	switch {
	case raw != "" && requirements > 0:
		return field.ErrorList{field.Invalid(path.Child("rawSelector"), raw, "may not specified at the same time as requirements")}
	case raw == "" && requirements == 0:
		return field.ErrorList{
			field.Required(path.Child("requirements"), fmt.Sprintf("when %s is specified, requirements or rawSelector is required", path)),
		}
	}
	return nil
}
