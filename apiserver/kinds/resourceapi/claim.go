package resourceapi

import (
	"slices"
	"strings"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func claims() resource.Kind[*resourcev1.ResourceClaim] {
	return resource.Kind[*resourcev1.ResourceClaim]{
		GroupVersionKind: resourcev1.SchemeGroupVersion.WithKind("ResourceClaim"),
		Plural:           "resourceclaims",
		ReturnDeleted:    true,
		New:              func() *resourcev1.ResourceClaim { return &resourcev1.ResourceClaim{} },
		NewList:          func() runtime.Object { return &resourcev1.ResourceClaimList{} },
		Default:          defaultWholeClaim,
		PrepareCreate:    func(claim *resourcev1.ResourceClaim) { dropGated(&claim.Spec) },
		PrepareUpdate:    func(claim, _ *resourcev1.ResourceClaim) { dropGated(&claim.Spec) },
		StatusResets:     []string{"metadata", "spec"},
		PrepareStatus:    prepareClaimStatus,
		Validate: func(claim *resourcev1.ResourceClaim) field.ErrorList {
			return validateClaim(&claim.Spec, field.NewPath("spec"))
		},
		ValidateUpdate: func(claim, old *resourcev1.ResourceClaim) field.ErrorList {
			return rule.Immutable(claim.Spec, old.Spec, field.NewPath("spec"))
		},
		ValidateStatus: validateClaimStatus,
		Spec:           func(claim *resourcev1.ResourceClaim) any { return &claim.Spec },
		Status:         func(claim *resourcev1.ResourceClaim) any { return &claim.Status },
		Columns: []resource.Column[*resourcev1.ResourceClaim]{
			column.Name[*resourcev1.ResourceClaim](),
			column.Text("State", "A summary of the current state (allocated, pending, reserved, etc.).", 0, claimState),
			column.Age[*resourcev1.ResourceClaim](),
		},
	}
}

func claimTemplates() resource.Kind[*resourcev1.ResourceClaimTemplate] {
	return resource.Kind[*resourcev1.ResourceClaimTemplate]{
		GroupVersionKind: resourcev1.SchemeGroupVersion.WithKind("ResourceClaimTemplate"),
		Plural:           "resourceclaimtemplates",
		ReturnDeleted:    true,
		New:              func() *resourcev1.ResourceClaimTemplate { return &resourcev1.ResourceClaimTemplate{} },
		NewList:          func() runtime.Object { return &resourcev1.ResourceClaimTemplateList{} },
		Default:          func(template *resourcev1.ResourceClaimTemplate) { defaultClaim(&template.Spec.Spec) },
		PrepareCreate:    func(template *resourcev1.ResourceClaimTemplate) { dropGated(&template.Spec.Spec) },
		PrepareUpdate:    func(template, _ *resourcev1.ResourceClaimTemplate) { dropGated(&template.Spec.Spec) },
		Validate:         validateTemplate,
		ValidateUpdate: func(template, old *resourcev1.ResourceClaimTemplate) field.ErrorList {
			return append(validateTemplate(template), validation.ValidateImmutableField(template.Spec, old.Spec, field.NewPath("spec"))...)
		},
		Columns: []resource.Column[*resourcev1.ResourceClaimTemplate]{
			column.Name[*resourcev1.ResourceClaimTemplate](), column.Age[*resourcev1.ResourceClaimTemplate](),
		},
	}
}

func validateTemplate(template *resourcev1.ResourceClaimTemplate) field.ErrorList {
	path := field.NewPath("spec")
	errs := metav1validation.ValidateLabels(template.Spec.Labels, path.Child("metadata", "labels"))
	errs = append(errs, validation.ValidateAnnotations(template.Spec.Annotations, path.Child("metadata", "annotations"))...)
	errs = append(
		errs,
		rule.OnlyFields(template.Spec.ObjectMeta, sets.New("Annotations", "Labels"), "cannot be set", path.Child("metadata"))...)
	return append(errs, validateClaim(&template.Spec.Spec, path.Child("spec"))...)
}

func defaultWholeClaim(claim *resourcev1.ResourceClaim) {
	defaultClaim(&claim.Spec)
	if claim.Status.Allocation == nil {
		return
	}
	for i := range claim.Status.Allocation.Devices.Results {
		defaultOperators(claim.Status.Allocation.Devices.Results[i].Tolerations)
	}
}

func defaultClaim(spec *resourcev1.ResourceClaimSpec) {
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if request.Exactly != nil {
			defaultCount(&request.Exactly.AllocationMode, &request.Exactly.Count)
			defaultOperators(request.Exactly.Tolerations)
		}
		for j := range request.FirstAvailable {
			defaultCount(&request.FirstAvailable[j].AllocationMode, &request.FirstAvailable[j].Count)
			defaultOperators(request.FirstAvailable[j].Tolerations)
		}
	}
}

func defaultOperators(tolerations []resourcev1.DeviceToleration) {
	for i := range tolerations {
		rule.Default(&tolerations[i].Operator, resourcev1.DeviceTolerationOpEqual)
	}
}

func defaultCount(mode *resourcev1.DeviceAllocationMode, count *int64) {
	rule.Default(mode, resourcev1.DeviceAllocationModeExactCount)
	if *mode == resourcev1.DeviceAllocationModeExactCount {
		rule.Default(count, 1)
	}
}

func dropGated(spec *resourcev1.ResourceClaimSpec) {
	for i := range spec.Devices.Requests {
		request := &spec.Devices.Requests[i]
		if request.Exactly != nil {
			request.Exactly.DerivedAttributes = nil
		}
		for j := range request.FirstAvailable {
			request.FirstAvailable[j].DerivedAttributes = nil
		}
	}
}

// prepareClaimStatus: what drivers say of a device goes with its allocation.
func prepareClaimStatus(claim, old *resourcev1.ResourceClaim) {
	metav1.ResetObjectMetaForStatus(claim, old)
	if claim.Status.Allocation != nil {
		for i := range claim.Status.Allocation.Devices.Results {
			claim.Status.Allocation.Devices.Results[i].SkipNodeOperations = nil // its feature is off
		}
	}
	if old.Status.Allocation != nil && claim.Status.Allocation == nil {
		gone := allocated(old.Status.Allocation)
		claim.Status.Devices = slices.DeleteFunc(
			claim.Status.Devices,
			func(device resourcev1.AllocatedDeviceStatus) bool { return gone[statusID(device)] },
		)
	}
}

func claimState(claim *resourcev1.ResourceClaim) string {
	var states []string
	if claim.DeletionTimestamp != nil {
		states = append(states, "deleted")
	}
	switch {
	case claim.Status.Allocation != nil && len(claim.Status.ReservedFor) > 0:
		states = append(states, "allocated", "reserved")
	case claim.Status.Allocation != nil:
		states = append(states, "allocated")
	case claim.DeletionTimestamp == nil:
		states = append(states, "pending")
	}
	return strings.Join(states, ",")
}

func validateClaim(spec *resourcev1.ResourceClaimSpec, path *field.Path) field.ErrorList {
	devices, at := &spec.Devices, path.Child("devices")
	names := requestNames(devices)
	errs := validateSet(devices.Requests, resourcev1.DeviceRequestsMaxSize,
		func(request resourcev1.DeviceRequest) string { return request.Name }, validateRequest, at.Child("requests"))
	errs = append(
		errs,
		validateEach(
			devices.Constraints,
			resourcev1.DeviceConstraintsMaxSize,
			func(c resourcev1.DeviceConstraint, at *field.Path) field.ErrorList {
				return validateConstraint(&c, names, at)
			},
			at.Child("constraints"),
		)...)
	return append(
		errs,
		validateEach(
			devices.Config,
			resourcev1.DeviceConfigMaxSize,
			func(config resourcev1.DeviceClaimConfiguration, at *field.Path) field.ErrorList {
				return append(
					validateNameRefs(config.Requests, names, at.Child("requests")),
					validateConfig(&config.DeviceConfiguration, false, at)...)
			},
			at.Child("config"),
		)...)
}

// requestNames are the names by which other parts of a claim can mean a request:
// its own, or its own and that of one of its alternatives.
func requestNames(devices *resourcev1.DeviceClaim) map[string]bool {
	names := map[string]bool{}
	for _, request := range devices.Requests {
		names[request.Name] = true
		for _, alternative := range request.FirstAvailable {
			names[request.Name+"/"+alternative.Name] = true
		}
	}
	return names
}

func validateNameRefs(refs []string, names map[string]bool, path *field.Path) field.ErrorList {
	return validateSet(refs, resourcev1.DeviceRequestsMaxSize, itself, func(ref string, at *field.Path) field.ErrorList {
		return validateNameRef(ref, names, at)
	}, path)
}

func validateNameRef(ref string, names map[string]bool, path *field.Path) field.ErrorList {
	const unknown = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'"
	parts := strings.Split(ref, "/")
	if len(parts) > 2 {
		return field.ErrorList{field.Invalid(path, ref, unknown)}
	}
	var errs field.ErrorList
	for _, part := range parts {
		errs = append(errs, rule.Label(part, path)...)
	}
	if !names[ref] {
		errs = append(errs, field.Invalid(path, ref, unknown))
	}
	return errs
}

func validateRequest(request resourcev1.DeviceRequest, path *field.Path) field.ErrorList {
	const one = "exactly one of `exactly` or `firstAvailable` is required"
	errs := rule.Label(request.Name, path.Child("name"))
	alternatives := len(request.FirstAvailable) > 0
	switch {
	case request.Exactly == nil && !alternatives:
		return append(errs, field.Required(path, one))
	case request.Exactly != nil && alternatives:
		return append(errs, field.Invalid(path, nil, one+", but multiple fields are set"))
	case alternatives:
		return append(errs, validateSet(request.FirstAvailable, resourcev1.FirstAvailableDeviceRequestMaxSize,
			func(sub resourcev1.DeviceSubRequest) string { return sub.Name }, validateAlternative, path.Child("firstAvailable"))...)
	}
	exact := request.Exactly
	return append(
		errs,
		validateWish(
			exact.DeviceClassName,
			exact.Selectors,
			exact.AllocationMode,
			exact.Count,
			exact.Tolerations,
			path.Child("exactly"),
		)...)
}

func validateAlternative(sub resourcev1.DeviceSubRequest, path *field.Path) field.ErrorList {
	errs := rule.Label(sub.Name, path.Child("name"))
	return append(errs, validateWish(sub.DeviceClassName, sub.Selectors, sub.AllocationMode, sub.Count, sub.Tolerations, path)...)
}

func validateWish(
	class string,
	selectors []resourcev1.DeviceSelector,
	mode resourcev1.DeviceAllocationMode,
	count int64,
	tolerations []resourcev1.DeviceToleration,
	path *field.Path,
) field.ErrorList {
	var errs field.ErrorList
	if class == "" {
		errs = append(errs, field.Required(path.Child("deviceClassName"), ""))
	} else {
		errs = append(errs, rule.Subdomain(class, path.Child("deviceClassName"))...)
	}
	errs = append(errs, validateSelectors(selectors, false, path.Child("selectors"))...)
	switch at := path.Child("count"); {
	case mode == resourcev1.DeviceAllocationModeAll && count != 0:
		errs = append(errs, field.Invalid(at, count, "must not be specified when allocationMode is 'All'"))
	case mode == resourcev1.DeviceAllocationModeExactCount && count <= 0:
		errs = append(errs, field.Invalid(at, count, "must be greater than zero"))
	}
	errs = append(
		errs,
		rule.OneOf(
			mode,
			[]resourcev1.DeviceAllocationMode{resourcev1.DeviceAllocationModeAll, resourcev1.DeviceAllocationModeExactCount},
			path.Child("allocationMode"),
		)...)
	return append(errs, validateEach(tolerations, resourcev1.DeviceTolerationsMaxLength, validateToleration, path.Child("tolerations"))...)
}

func validateConstraint(c *resourcev1.DeviceConstraint, names map[string]bool, path *field.Path) field.ErrorList {
	errs := validateNameRefs(c.Requests, names, path.Child("requests"))
	if c.MatchAttribute != nil {
		errs = append(errs, validateFullyQualified(c.MatchAttribute, path.Child("matchAttribute"))...)
	}
	if c.DistinctAttribute != nil {
		errs = append(errs, validateFullyQualified(c.DistinctAttribute, path.Child("distinctAttribute"))...)
	}
	if c.MatchAttribute != nil || c.DistinctAttribute != nil {
		return errs
	}
	return append(
		errs,
		field.Required(path, `exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set`),
	)
}
