package flowcontrol

import (
	"fmt"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// defaultPrecedence is between the system's schemas and the last resort.
const defaultPrecedence = 1000

func flowSchemas() resource.Kind[*flowcontrolv1.FlowSchema] {
	return resource.Kind[*flowcontrolv1.FlowSchema]{
		GroupVersionKind: flowcontrolv1.SchemeGroupVersion.WithKind("FlowSchema"),
		Plural:           "flowschemas",
		ClusterScoped:    true,
		New:              func() *flowcontrolv1.FlowSchema { return &flowcontrolv1.FlowSchema{} },
		NewList:          func() runtime.Object { return &flowcontrolv1.FlowSchemaList{} },
		Default: func(schema *flowcontrolv1.FlowSchema) {
			rule.Default(&schema.Spec.MatchingPrecedence, defaultPrecedence)
		},
		StatusResets:   []string{"metadata", "spec"},
		PrepareStatus:  func(schema, old *flowcontrolv1.FlowSchema) { resetMeta(&schema.ObjectMeta, &old.ObjectMeta) },
		Validate:       validateFlowSchema,
		ValidateUpdate: func(schema, _ *flowcontrolv1.FlowSchema) field.ErrorList { return validateFlowSchema(schema) },
		ValidateStatus: func(schema, _ *flowcontrolv1.FlowSchema) field.ErrorList { return validateFlowSchemaStatus(schema) },
		Spec:           func(schema *flowcontrolv1.FlowSchema) any { return &schema.Spec },
		Status:         func(schema *flowcontrolv1.FlowSchema) any { return &schema.Status },
		Generation:     true,
		Columns:        flowSchemaColumns(),
	}
}

func flowSchemaColumns() []resource.Column[*flowcontrolv1.FlowSchema] {
	spec := flowcontrolv1.FlowSchemaSpec{}.SwaggerDoc()
	return []resource.Column[*flowcontrolv1.FlowSchema]{
		column.Name[*flowcontrolv1.FlowSchema](),
		column.Text(
			"PriorityLevel",
			flowcontrolv1.PriorityLevelConfigurationReference{}.SwaggerDoc()["name"],
			0,
			func(schema *flowcontrolv1.FlowSchema) string {
				return schema.Spec.PriorityLevelConfiguration.Name
			},
		),
		{
			// Upstream calls this column a string though its cells are numbers.
			Name: "MatchingPrecedence", Type: "string", Description: spec["matchingPrecedence"],
			Cell: func(schema *flowcontrolv1.FlowSchema, _ time.Time) any { return int64(schema.Spec.MatchingPrecedence) },
		},
		column.Text("DistinguisherMethod", spec["distinguisherMethod"], 0, func(schema *flowcontrolv1.FlowSchema) string {
			if method := schema.Spec.DistinguisherMethod; method != nil {
				return string(method.Type)
			}
			return column.None
		}),
		column.Age[*flowcontrolv1.FlowSchema](),
		column.Text("MissingPL", "references a broken or non-existent PriorityLevelConfiguration", 0, danglingCell),
	}
}

func danglingCell(schema *flowcontrolv1.FlowSchema) string {
	for _, condition := range schema.Status.Conditions {
		if condition.Type == flowcontrolv1.FlowSchemaConditionDangling {
			return string(condition.Status)
		}
	}
	return "?"
}

func validateFlowSchema(schema *flowcontrolv1.FlowSchema) field.ErrorList {
	spec, path := &schema.Spec, field.NewPath("spec")
	errs := validatePrecedence(spec.MatchingPrecedence, schema.Name, path.Child("matchingPrecedence"))
	if method := spec.DistinguisherMethod; method != nil {
		errs = append(errs, rule.OneOf(method.Type, []flowcontrolv1.FlowDistinguisherMethodType{
			flowcontrolv1.FlowDistinguisherMethodByNamespaceType, flowcontrolv1.FlowDistinguisherMethodByUserType,
		}, path.Child("distinguisherMethod", "type"))...)
	}
	if name, at := spec.PriorityLevelConfiguration.Name, path.Child("priorityLevelConfiguration", "name"); name == "" {
		errs = append(errs, field.Required(at, "must reference a priority level"))
	} else {
		errs = append(errs, rule.Subdomain(name, at)...)
	}
	for i := range spec.Rules {
		errs = append(errs, validatePolicyRules(&spec.Rules[i], path.Child("rules").Index(i))...)
	}
	for _, fixed := range bootstrap.MandatoryFlowSchemas {
		if fixed.Name == schema.Name && !equality.Semantic.DeepEqual(fixed.Spec, *spec) {
			errs = append(errs, field.Invalid(path, *spec, fmt.Sprintf("spec of '%s' must equal the fixed value", schema.Name)))
		}
	}
	return append(errs, validateFlowSchemaStatus(schema)...)
}

// validatePrecedence: nothing comes before what is never queued.
func validatePrecedence(precedence int32, name string, path *field.Path) field.ErrorList {
	switch {
	case precedence <= 0:
		return field.ErrorList{field.Invalid(path, precedence, "must be a positive value")}
	case precedence > flowcontrolv1.FlowSchemaMaxMatchingPrecedence:
		return field.ErrorList{
			field.Invalid(path, precedence, fmt.Sprintf("must not be greater than %v", flowcontrolv1.FlowSchemaMaxMatchingPrecedence)),
		}
	case precedence == 1 && name != flowcontrolv1.FlowSchemaNameExempt:
		return field.ErrorList{field.Invalid(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")}
	}
	return nil
}

func validateFlowSchemaStatus(schema *flowcontrolv1.FlowSchema) field.ErrorList {
	return validateConditions(
		schema.Status.Conditions,
		func(c flowcontrolv1.FlowSchemaCondition) flowcontrolv1.FlowSchemaConditionType { return c.Type },
	)
}
