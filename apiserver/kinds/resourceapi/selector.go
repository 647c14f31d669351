package resourceapi

import (
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// validateSelectors compiles the expressions that choose devices, unless they are
// stored already.
func validateSelectors(selectors []resourcev1.DeviceSelector, stored bool, path *field.Path) field.ErrorList {
	return validateEach(
		selectors,
		resourcev1.DeviceSelectorsMaxSize,
		func(selector resourcev1.DeviceSelector, at *field.Path) field.ErrorList {
			switch {
			case selector.CEL == nil:
				return field.ErrorList{field.Required(at.Child("cel"), "")}
			case stored:
				return nil
			}
			return validateExpression(selector.CEL.Expression, at.Child("cel", "expression"))
		},
		path,
	)
}

func validateExpression(text string, path *field.Path) field.ErrorList {
	if len(text) > resourcev1.CELSelectorExpressionMaxLength {
		return field.ErrorList{field.TooLong(path, "", resourcev1.CELSelectorExpressionMaxLength)}
	}
	environment := environment.NewExpressions
	result := dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true}).
		CompileCELExpression(text, dracel.Options{EnvType: &environment})
	switch {
	case result.Error == nil && result.MaxCost > resourcev1.CELSelectorExpressionMaxCost:
		return field.ErrorList{field.Forbidden(path, "too complex, exceeds cost limit")}
	case result.Error == nil:
		return nil
	}
	switch result.Error.Type {
	case apiservercel.ErrorTypeRequired:
		return field.ErrorList{field.Required(path, result.Error.Detail)}
	case apiservercel.ErrorTypeInvalid:
		return field.ErrorList{field.Invalid(path, text, result.Error.Detail)}
	}
	return field.ErrorList{field.InternalError(path, result.Error)}
}
