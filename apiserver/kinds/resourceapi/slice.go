package resourceapi

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

type slice = resourcev1.ResourceSlice

func slicesOfDevices() resource.Kind[*slice] {
	return resource.Kind[*slice]{
		GroupVersionKind: resourcev1.SchemeGroupVersion.WithKind("ResourceSlice"),
		Plural:           "resourceslices",
		ReturnDeleted:    true,
		ClusterScoped:    true,
		New:              func() *slice { return &slice{} },
		NewList:          func() runtime.Object { return &resourcev1.ResourceSliceList{} },
		PrepareCreate:    prepareSlice,
		PrepareUpdate:    func(s, _ *slice) { dropGatedDevices(s) },
		StampUpdate:      stampTaints,
		Validate:         func(s *slice) field.ErrorList { return validateSlice(s, nil) },
		ValidateUpdate:   validateSlice,
		Warnings:         sliceWarnings,
		Spec:             func(s *slice) any { return &s.Spec },
		Generation:       true,
		Fields: func(s *slice) fields.Set {
			return fields.Set{
				"spec.nodeName":  ptr.Deref(s.Spec.NodeName, ""),
				"spec.driver":    s.Spec.Driver,
				"spec.pool.name": s.Spec.Pool.Name,
			}
		},
		Columns: sliceColumns(),
	}
}

// prepareSlice: the time of creation is the time at which taints are added.
func prepareSlice(s *slice) {
	dropGatedDevices(s)
	for i := range s.Spec.Devices {
		for j := range s.Spec.Devices[i].Taints {
			rule.DefaultPointer(&s.Spec.Devices[i].Taints[j].TimeAdded, s.CreationTimestamp)
		}
	}
}

// stampTaints: a taint that a client sends without its time is the stored one, or is added now.
func stampTaints(s, old *slice, now time.Time) {
	for i := range s.Spec.Devices {
		device := &s.Spec.Devices[i]
		was := deviceOf(old, device.Name)
		for j := range device.Taints {
			if was != nil && j < len(was.Taints) && device.Taints[j].TimeAdded == nil && device.Taints[j].Key == was.Taints[j].Key {
				device.Taints[j].TimeAdded = was.Taints[j].TimeAdded
			}
			rule.DefaultPointer(&device.Taints[j].TimeAdded, metav1.NewTime(now.Truncate(time.Second)))
		}
	}
}

func dropGatedDevices(s *slice) {
	s.Spec.PartitionTypeAttribute, s.Spec.SkipNodeOperations = nil, nil
	for i := range s.Spec.Devices {
		device := &s.Spec.Devices[i]
		device.NodeAllocatableResources = nil
		for j := range device.ConsumesCounters {
			device.ConsumesCounters[j].CompatibilityGroups = nil
		}
		for name, attribute := range device.Attributes {
			attribute.BoolValues, attribute.IntValues, attribute.StringValues, attribute.VersionValues = nil, nil, nil, nil
			device.Attributes[name] = attribute
		}
	}
}

func deviceOf(s *slice, name string) *resourcev1.Device {
	if s == nil {
		return nil
	}
	for i := range s.Spec.Devices {
		if s.Spec.Devices[i].Name == name {
			return &s.Spec.Devices[i]
		}
	}
	return nil
}

func sliceWarnings(s *slice) []string {
	if s.Spec.Driver == strings.ToLower(s.Spec.Driver) {
		return nil
	}
	return []string{fmt.Sprintf("spec.driver: driver names should be lowercase; %q contains uppercase characters", s.Spec.Driver)}
}

func sliceColumns() []resource.Column[*slice] {
	doc := resourcev1.ResourceSliceSpec{}.SwaggerDoc()
	return []resource.Column[*slice]{
		column.Name[*slice](),
		column.Text("Node", doc["nodeName"], 0, func(s *slice) string { return ptr.Deref(s.Spec.NodeName, "") }),
		column.Text("Driver", doc["driver"], 0, func(s *slice) string { return s.Spec.Driver }),
		column.Text("Pool", resourcev1.ResourcePool{}.SwaggerDoc()["name"], 0, func(s *slice) string { return s.Spec.Pool.Name }),
		column.Age[*slice](),
	}
}

// validateSlice judges a slice; old is nil for a new one.
func validateSlice(s, old *slice) field.ErrorList {
	spec, path := &s.Spec, field.NewPath("spec")
	errs := validateDriver(spec.Driver, path.Child("driver"))
	errs = append(errs, validatePoolOf(&spec.Pool, path.Child("pool"))...)
	if old != nil {
		errs = append(errs, validation.ValidateImmutableField(spec.Pool.Name, old.Spec.Pool.Name, path.Child("pool", "name"))...)
		errs = append(errs, validation.ValidateImmutableField(spec.Driver, old.Spec.Driver, path.Child("driver"))...)
		errs = append(errs, validation.ValidateImmutableField(spec.NodeName, old.Spec.NodeName, path.Child("nodeName"))...)
	}
	errs = append(errs, validatePlace(spec, path)...)
	if spec.SharedCounters != nil && spec.Devices != nil {
		errs = append(errs, field.Invalid(path, "", "only one of `sharedCounters` or `devices` is allowed"))
	}
	errs = append(errs, validateSet(spec.Devices, devicesMax(spec.Devices), func(device resourcev1.Device) string { return device.Name },
		func(device resourcev1.Device, at *field.Path) field.ErrorList {
			return validateDevice(&device, deviceOf(old, device.Name), rule.IsTrue(spec.PerDeviceNodeSelection), at)
		}, path.Child("devices"))...)
	return append(
		errs,
		validateSet(spec.SharedCounters, resourcev1.ResourceSliceMaxCounterSets, func(set resourcev1.CounterSet) string { return set.Name },
			func(set resourcev1.CounterSet, at *field.Path) field.ErrorList {
				return validateCounters(
					set.Name,
					at.Child("name"),
					set.Counters,
					resourcev1.ResourceSliceMaxCountersPerCounterSet,
					at.Child("counters"),
				)
			}, path.Child("sharedCounters"))...)
}

// devicesMax: devices that say more are fewer, so that a slice stays small enough.
func devicesMax(devices []resourcev1.Device) int {
	for i := range devices {
		if len(devices[i].Taints)+len(devices[i].ConsumesCounters) > 0 {
			return resourcev1.ResourceSliceMaxDevicesWithAdvancedFeatures
		}
	}
	return resourcev1.ResourceSliceMaxDevices
}

func validatePoolOf(pool *resourcev1.ResourcePool, path *field.Path) field.ErrorList {
	errs := validatePool(pool.Name, path.Child("name"))
	if pool.ResourceSliceCount <= 0 {
		errs = append(errs, field.Invalid(path.Child("resourceSliceCount"), pool.ResourceSliceCount, "must be greater than zero"))
	}
	if pool.Generation < 0 {
		errs = append(errs, field.Invalid(path.Child("generation"), pool.Generation, "must be greater than or equal to zero"))
	}
	return errs
}

// validatePlace: the devices are on one node, on those that a term selects, on all, or
// each says so itself.
func validatePlace(spec *resourcev1.ResourceSliceSpec, path *field.Path) field.ErrorList {
	const one = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, `perDeviceNodeSelection` is required"
	set, errs := placesSet(spec.NodeName, spec.NodeSelector, spec.AllNodes, "must be either unset or set to a non-empty string", path)
	if spec.NodeSelector != nil && len(spec.NodeSelector.NodeSelectorTerms) != 1 {
		errs = append(
			errs,
			field.Invalid(
				path.Child("nodeSelector", "nodeSelectorTerms"),
				spec.NodeSelector.NodeSelectorTerms,
				"must have exactly one node selector term",
			),
		)
	}
	switch each := spec.PerDeviceNodeSelection; {
	case each == nil:
	case *each:
		set = append(set, "`perDeviceNodeSelection`")
	default:
		errs = append(errs, field.Invalid(path.Child("perDeviceNodeSelection"), false, "must be either unset or set to true"))
	}
	switch len(set) {
	case 0:
		errs = append(errs, field.Required(path, one))
	case 1:
	default:
		errs = append(errs, field.Invalid(path, "{"+strings.Join(set, ", ")+"}", one+", but multiple fields are set"))
	}
	return errs
}

// placesSet names the fields that place devices, and judges them.
func placesSet(
	name *string,
	selector *corev1.NodeSelector,
	all *bool,
	emptyName string,
	path *field.Path,
) (set []string, errs field.ErrorList) {
	switch {
	case name == nil:
	case *name == "":
		errs = append(errs, field.Invalid(path.Child("nodeName"), "", emptyName))
	default:
		set = append(set, "`nodeName`")
		errs = append(errs, rule.Subdomain(*name, path.Child("nodeName"))...)
	}
	if selector != nil {
		set = append(set, "`nodeSelector`")
		errs = append(errs, podspec.NodeSelector(selector, path.Child("nodeSelector"))...)
		errs = append(errs, podspec.NodeSelectorValues(selector, path.Child("nodeSelector"))...)
	}
	switch {
	case all == nil:
	case *all:
		set = append(set, "`allNodes`")
	default:
		errs = append(errs, field.Invalid(path.Child("allNodes"), false, "must be either unset or set to true"))
	}
	return set, errs
}
