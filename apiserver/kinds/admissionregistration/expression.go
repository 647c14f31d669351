package admissionregistration

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	plugincel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// matchConditionsMax is how many conditions a webhook or policy may have.
const matchConditionsMax = 64

// expression is CEL source with the types that it may return. It implements what
// the published compiler asks for.
type expression struct {
	name, text string
	returns    []*cel.Type
}

var _ plugincel.NamedExpressionAccessor = expression{}

// GetName implements plugincel.NamedExpressionAccessor.
func (e expression) GetName() string { return e.name }

// GetExpression implements plugincel.ExpressionAccessor.
func (e expression) GetExpression() string { return e.text }

// ReturnTypes implements plugincel.ExpressionAccessor.
func (e expression) ReturnTypes() []*cel.Type { return e.returns }

// compiler compiles the expressions of one object. An expression that the stored
// object has had is compiled as stored ones are: with all the language has known.
type compiler struct {
	cel    plugincel.Compiler
	params bool
	stored map[string]bool
}

// plain is the compiler of expressions without variables; it keeps no state.
var plain = sync.OnceValue(func() plugincel.Compiler { return plugincel.NewCompiler(baseEnvironment()) })

func baseEnvironment() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
}

// composed returns a compiler in which expressions see the variables declared before.
func composed() plugincel.Compiler {
	compiler, err := plugincel.NewCompositedCompiler(baseEnvironment())
	if err != nil {
		// The environment is that of the program, so this cannot be; without variables is safe.
		return plain()
	}
	return compiler
}

func (c compiler) environment(text string) environment.Type {
	if c.stored[text] {
		return environment.StoredExpressions
	}
	return environment.NewExpressions
}

// check compiles an expression as part of the given variables.
func (c compiler) check(e expression, variables plugincel.OptionalVariableDeclarations, path *field.Path) field.ErrorList {
	variables.HasParams = c.params
	return celErrors(e, c.cel.CompileCELExpression(e, variables, c.environment(e.text)), path)
}

// declare compiles a variable, which later expressions may use.
func (c compiler) declare(variable *admissionregistrationv1.Variable, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	switch {
	case strings.TrimSpace(variable.Name) == "":
		errs = append(errs, field.Required(path.Child("name"), "name is not specified"))
	case !isIdentifier(variable.Name):
		errs = append(errs, field.Invalid(path.Child("name"), variable.Name, "must be a valid CEL identifier"))
	}
	if strings.TrimSpace(variable.Expression) == "" {
		return append(errs, field.Required(path.Child("expression"), "expression is not specified"))
	}
	composite, ok := c.cel.(*plugincel.CompositedCompiler)
	if !ok {
		return append(errs, field.InternalError(path, errors.New("variable composition is not allowed")))
	}
	e := expression{name: variable.Name, text: variable.Expression, returns: []*cel.Type{cel.AnyType, cel.DynType}}
	result := composite.CompileAndStoreVariable(
		e,
		plugincel.OptionalVariableDeclarations{HasParams: c.params, HasAuthorizer: true},
		c.environment(e.text),
	)
	return append(errs, celErrors(e, result, path.Child("expression"))...)
}

func celErrors(e expression, result plugincel.CompilationResult, path *field.Path) field.ErrorList {
	if result.Error == nil {
		return nil
	}
	switch result.Error.Type {
	case apiservercel.ErrorTypeRequired:
		return field.ErrorList{field.Required(path, result.Error.Detail)}
	case apiservercel.ErrorTypeInvalid:
		return field.ErrorList{field.Invalid(path, e.text, result.Error.Detail)}
	case apiservercel.ErrorTypeInternal:
		return field.ErrorList{field.InternalError(path, result.Error)}
	}
	return field.ErrorList{field.InternalError(path, fmt.Errorf("unsupported error type: %w", result.Error))}
}

// validateMatchConditions: conditions see the request, not the variables of a policy.
func validateMatchConditions(
	conditions []admissionregistrationv1.MatchCondition,
	params bool,
	stored map[string]bool,
	path *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	if n := len(conditions); n > matchConditionsMax {
		errs = append(errs, field.TooMany(path, n, matchConditionsMax))
	}
	if len(conditions) == 0 {
		return errs
	}
	names, c := map[string]bool{}, compiler{cel: plain(), params: params, stored: stored}
	for i, condition := range conditions {
		at := path.Index(i)
		if text := strings.TrimSpace(condition.Expression); text == "" {
			errs = append(errs, field.Required(at.Child("expression"), ""))
		} else {
			errs = append(errs, c.check(expression{text: text, returns: []*cel.Type{cel.BoolType}},
				plugincel.OptionalVariableDeclarations{HasAuthorizer: true}, at.Child("expression"))...)
		}
		switch {
		case condition.Name == "":
			errs = append(errs, field.Required(at.Child("name"), ""))
			continue
		case names[condition.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), condition.Name))
		}
		names[condition.Name] = true
		errs = append(errs, rule.QualifiedName(condition.Name, at.Child("name"))...)
	}
	return errs
}

// storeConditions adds the expressions of conditions to a set.
func storeConditions(stored map[string]bool, conditions []admissionregistrationv1.MatchCondition) {
	for _, condition := range conditions {
		stored[strings.TrimSpace(condition.Expression)] = true
	}
}

// reservedWords of the CEL grammar.
var reservedWords = map[string]bool{
	"true": true, "false": true, "null": true, "in": true, "as": true, "break": true, "const": true, "continue": true,
	"else": true, "for": true, "function": true, "if": true, "import": true, "let": true, "loop": true, "package": true,
	"namespace": true, "return": true, "var": true, "void": true, "while": true,
}

// isIdentifier: a letter or underscore, then also digits.
func isIdentifier(name string) bool {
	for i, r := range name {
		letter := r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return name != "" && !reservedWords[name]
}

// validateParamKind: the group and version are judged as those of an APIService.
func validateParamKind(kind *admissionregistrationv1.ParamKind, path *field.Path) field.ErrorList {
	errs := validateParamVersion(kind.APIVersion, path.Child("apiVersion"))
	if kind.Kind == "" {
		return append(errs, field.Required(path.Child("kind"), ""))
	}
	if msgs := utilvalidation.IsDNS1035Label(strings.ToLower(kind.Kind)); len(msgs) > 0 {
		errs = append(
			errs,
			field.Invalid(path.Child("kind"), kind.Kind, "may have mixed case, but should otherwise match: "+strings.Join(msgs, ",")),
		)
	}
	return errs
}

func validateParamVersion(apiVersion string, path *field.Path) field.ErrorList {
	if apiVersion == "" {
		return rule.Required(apiVersion, path)
	}
	group, version, isGroup := strings.Cut(apiVersion, "/")
	switch {
	case !isGroup:
		group, version = "", apiVersion
	case strings.Contains(version, "/"):
		return field.ErrorList{field.Invalid(path, apiVersion, "unexpected GroupVersion string: "+apiVersion)}
	}
	var errs field.ErrorList
	if group != "" {
		if msgs := utilvalidation.IsDNS1123Subdomain(group); len(msgs) > 0 {
			errs = append(errs, field.Invalid(path, group, strings.Join(msgs, ",")))
		}
	}
	if version == "" {
		return append(errs, field.Invalid(path, apiVersion, "version must be specified"))
	}
	if msgs := utilvalidation.IsDNS1035Label(version); len(msgs) > 0 {
		errs = append(errs, field.Invalid(path, version, strings.Join(msgs, ",")))
	}
	return errs
}
