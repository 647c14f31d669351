package flowcontrol

import (
	"fmt"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	flowcontrolv1beta3 "k8s.io/api/flowcontrol/v1beta3"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap"
	"k8s.io/apiserver/pkg/util/shufflesharding"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Defaults of a limited level, and how many queues it may have.
const (
	defaultShares           = 30
	defaultQueues           = 64
	defaultHandSize         = 8
	defaultQueueLengthLimit = 50
	queuesMax               = 10_000_000
)

type (
	priorityLevel = flowcontrolv1.PriorityLevelConfiguration
	limits        = flowcontrolv1.LimitedPriorityLevelConfiguration
	queuing       = flowcontrolv1.QueuingConfiguration
)

func priorityLevels() resource.Kind[*priorityLevel] {
	return resource.Kind[*priorityLevel]{
		GroupVersionKind: flowcontrolv1.SchemeGroupVersion.WithKind("PriorityLevelConfiguration"),
		Plural:           "prioritylevelconfigurations",
		ClusterScoped:    true,
		New:              func() *priorityLevel { return &priorityLevel{} },
		NewList:          func() runtime.Object { return &flowcontrolv1.PriorityLevelConfigurationList{} },
		Default:          defaultPriorityLevel,
		StatusResets:     []string{"metadata", "spec"},
		PrepareStatus:    func(level, old *priorityLevel) { resetMeta(&level.ObjectMeta, &old.ObjectMeta) },
		Validate:         validatePriorityLevel,
		ValidateUpdate:   func(level, _ *priorityLevel) field.ErrorList { return validatePriorityLevel(level) },
		ValidateStatus:   func(level, _ *priorityLevel) field.ErrorList { return validatePriorityLevelStatus(level) },
		Spec:             func(level *priorityLevel) any { return &level.Spec },
		Status:           func(level *priorityLevel) any { return &level.Status },
		Generation:       true,
		Columns:          priorityLevelColumns(),
	}
}

func defaultPriorityLevel(level *priorityLevel) {
	if exempt := level.Spec.Exempt; exempt != nil {
		rule.DefaultPointer(&exempt.NominalConcurrencyShares, 0)
		rule.DefaultPointer(&exempt.LendablePercent, 0)
	}
	limited := level.Spec.Limited
	if limited == nil {
		return
	}
	rule.DefaultPointer(&limited.NominalConcurrencyShares, defaultShares)
	rule.DefaultPointer(&limited.LendablePercent, 0)
	if q := limited.LimitResponse.Queuing; q != nil {
		rule.Default(&q.HandSize, defaultHandSize)
		rule.Default(&q.Queues, defaultQueues)
		rule.Default(&q.QueueLengthLimit, defaultQueueLengthLimit)
	}
}

func priorityLevelColumns() []resource.Column[*priorityLevel] {
	spec, doc := flowcontrolv1.PriorityLevelConfigurationSpec{}.SwaggerDoc(), queuing{}.SwaggerDoc()
	queue := func(name, description string, number func(*queuing) int32) resource.Column[*priorityLevel] {
		return numberColumn(name, description, func(limited *limits) *int32 {
			if q := limited.LimitResponse.Queuing; q != nil {
				return ptr.To(number(q))
			}
			return nil
		})
	}
	return []resource.Column[*priorityLevel]{
		column.Name[*priorityLevel](),
		column.Text("Type", spec["type"], 0, func(level *priorityLevel) string { return string(level.Spec.Type) }),
		numberColumn(
			"NominalConcurrencyShares",
			limits{}.SwaggerDoc()["nominalConcurrencyShares"],
			func(limited *limits) *int32 { return limited.NominalConcurrencyShares },
		),
		queue("Queues", doc["queues"], func(q *queuing) int32 { return q.Queues }),
		queue("HandSize", doc["handSize"], func(q *queuing) int32 { return q.HandSize }),
		queue("QueueLengthLimit", doc["queueLengthLimit"], func(q *queuing) int32 { return q.QueueLengthLimit }),
		column.Age[*priorityLevel](),
	}
}

// numberColumn shows a number of a limited level. Upstream calls the column a string
// since there may be none.
func numberColumn(name, description string, number func(*limits) *int32) resource.Column[*priorityLevel] {
	return resource.Column[*priorityLevel]{
		Name: name, Type: "string", Description: description,
		Cell: func(level *priorityLevel, _ time.Time) any {
			if level.Spec.Limited != nil {
				if n := number(level.Spec.Limited); n != nil {
					return int64(*n)
				}
			}
			return column.None
		},
	}
}

func validatePriorityLevel(level *priorityLevel) field.ErrorList {
	var errs field.ErrorList
	path := field.NewPath("spec")
	if _, found := level.Annotations[flowcontrolv1beta3.PriorityLevelPreserveZeroConcurrencySharesKey]; found {
		errs = append(
			errs,
			field.Forbidden(
				field.NewPath("metadata", "annotations"),
				fmt.Sprintf("annotation '%s' is forbidden", flowcontrolv1beta3.PriorityLevelPreserveZeroConcurrencySharesKey),
			),
		)
	}
	errs = append(errs, validateLevelSpec(&level.Spec, level.Name, path)...)
	errs = append(errs, validateMandatoryLevel(level, path)...)
	return append(errs, validatePriorityLevelStatus(level)...)
}

// validateMandatoryLevel: what the server needs to live cannot be changed, except for
// how much of the exempt level's share others may borrow.
func validateMandatoryLevel(level *priorityLevel, path *field.Path) field.ErrorList {
	for _, fixed := range bootstrap.MandatoryPriorityLevelConfigurations {
		if fixed.Name != level.Name {
			continue
		}
		spec, except := level.Spec, ""
		if level.Name == flowcontrolv1.PriorityLevelConfigurationNameExempt {
			spec.Exempt, except = fixed.Spec.Exempt, " except the 'spec.exempt' field"
		}
		if !equality.Semantic.DeepEqual(spec, fixed.Spec) {
			return field.ErrorList{
				field.Invalid(path, level.Spec, fmt.Sprintf("spec of '%s'%s must equal the fixed value", level.Name, except)),
			}
		}
	}
	return nil
}

func validateLevelSpec(spec *flowcontrolv1.PriorityLevelConfigurationSpec, name string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	exempt, limited := spec.Type == flowcontrolv1.PriorityLevelEnablementExempt, spec.Type == flowcontrolv1.PriorityLevelEnablementLimited
	if exempt != (name == flowcontrolv1.PriorityLevelConfigurationNameExempt) {
		errs = append(errs, field.Invalid(path.Child("type"), spec.Type, "must be 'Exempt' if and only if `name` is 'exempt'"))
	}
	errs = append(errs, rule.RequiredOneOf(spec.Type, []flowcontrolv1.PriorityLevelEnablement{
		flowcontrolv1.PriorityLevelEnablementExempt, flowcontrolv1.PriorityLevelEnablementLimited,
	}, path.Child("type"))...)
	switch at := path.Child("exempt"); {
	case spec.Exempt == nil:
	case !exempt:
		errs = append(errs, field.Forbidden(at, ""))
	default:
		errs = append(errs, validateShares(spec.Exempt.NominalConcurrencyShares, spec.Exempt.LendablePercent, at)...)
	}
	switch at := path.Child("limited"); {
	case limited && spec.Limited == nil:
		errs = append(errs, field.Required(at, ""))
	case limited:
		errs = append(errs, validateLimited(spec.Limited, at)...)
	case spec.Limited != nil:
		errs = append(errs, field.Forbidden(at, ""))
	}
	return errs
}

func validateShares(shares, lendable *int32, path *field.Path) field.ErrorList {
	const all = 100
	var errs field.ErrorList
	if shares != nil && *shares < 0 {
		errs = append(errs, field.Invalid(path.Child("nominalConcurrencyShares"), *shares, "must be a non-negative integer"))
	}
	if lendable != nil && (*lendable < 0 || *lendable > all) {
		errs = append(errs, field.Invalid(path.Child("lendablePercent"), *lendable, "must be between 0 and 100, inclusive"))
	}
	return errs
}

func validateLimited(limited *limits, path *field.Path) field.ErrorList {
	errs := validateShares(limited.NominalConcurrencyShares, limited.LendablePercent, path)
	if borrowing := limited.BorrowingLimitPercent; borrowing != nil && *borrowing < 0 {
		errs = append(errs, field.Invalid(path.Child("borrowingLimitPercent"), *borrowing, "if specified, must be a non-negative integer"))
	}
	response, at := limited.LimitResponse, path.Child("limitResponse")
	errs = append(errs, rule.RequiredOneOf(response.Type, []flowcontrolv1.LimitResponseType{
		flowcontrolv1.LimitResponseTypeQueue, flowcontrolv1.LimitResponseTypeReject,
	}, at.Child("type"))...)
	switch queues := response.Type == flowcontrolv1.LimitResponseTypeQueue; {
	case queues && response.Queuing == nil:
		errs = append(errs, field.Required(at.Child("queuing"), ""))
	case queues:
		errs = append(errs, validateQueuing(response.Queuing, at.Child("queuing"))...)
	case response.Queuing != nil:
		errs = append(errs, field.Forbidden(at.Child("queuing"), ""))
	}
	return errs
}

// validateQueuing: a flow is dealt a hand of queues by a hash, which has only so many bits.
func validateQueuing(q *queuing, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	const positive = "must be positive"
	if q.QueueLengthLimit <= 0 {
		errs = append(errs, field.Invalid(path.Child("queueLengthLimit"), q.QueueLengthLimit, positive))
	}
	switch at := path.Child("queues"); {
	case q.Queues <= 0:
		errs = append(errs, field.Invalid(at, q.Queues, positive))
	case q.Queues > queuesMax:
		errs = append(errs, field.Invalid(at, q.Queues, fmt.Sprintf("must not be greater than %d", queuesMax)))
	}
	switch at := path.Child("handSize"); {
	case q.HandSize <= 0:
		return append(errs, field.Invalid(at, q.HandSize, positive))
	case q.HandSize > q.Queues:
		return append(errs, field.Invalid(at, q.HandSize, fmt.Sprintf("should not be greater than queues (%d)", q.Queues)))
	case shufflesharding.RequiredEntropyBits(int(q.Queues), int(q.HandSize)) > shufflesharding.MaxHashBits:
		return append(
			errs,
			field.Invalid(at, q.HandSize, fmt.Sprintf("required entropy bits of deckSize %d and handSize %d should not be greater than %d",
				q.Queues, q.HandSize, shufflesharding.MaxHashBits)),
		)
	}
	return errs
}

func validatePriorityLevelStatus(level *priorityLevel) field.ErrorList {
	return validateConditions(
		level.Status.Conditions,
		func(c flowcontrolv1.PriorityLevelConfigurationCondition) flowcontrolv1.PriorityLevelConfigurationConditionType {
			return c.Type
		},
	)
}
