package storage

import (
	"strings"

	storagev1 "k8s.io/api/storage/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const (
	// tokenSecondsMin and tokenSecondsMax bound the life of a token for a driver.
	tokenSecondsMin = 600
	tokenSecondsMax = 1 << 32
	// updatePeriodSecondsMin is how often nodes may ask a driver for its limits.
	updatePeriodSecondsMin = 10
)

// Supported values in the order of messages.
var (
	groupPolicies = []storagev1.FSGroupPolicy{
		storagev1.FileFSGroupPolicy,
		storagev1.NoneFSGroupPolicy,
		storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy,
	}
	lifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral}
)

func csiDrivers() resource.Kind[*storagev1.CSIDriver] {
	return resource.Kind[*storagev1.CSIDriver]{
		GroupVersionKind:       storagev1.SchemeGroupVersion.WithKind("CSIDriver"),
		Plural:                 "csidrivers",
		ReturnDeleted:          true,
		ClusterScoped:          true,
		New:                    func() *storagev1.CSIDriver { return &storagev1.CSIDriver{} },
		NewList:                func() runtime.Object { return &storagev1.CSIDriverList{} },
		Default:                defaultCSIDriver,
		PrepareUpdate:          prepareCSIDriverUpdate,
		Validate:               validateCSIDriver,
		ValidateUpdate:         validateCSIDriverUpdate,
		ChangeWarnings:         csiDriverWarnings,
		RequireResourceVersion: true,
		Columns:                csiDriverColumns(),
	}
}

func defaultCSIDriver(driver *storagev1.CSIDriver) {
	spec := &driver.Spec
	rule.DefaultPointer(&spec.AttachRequired, true)
	rule.DefaultPointer(&spec.PodInfoOnMount, false)
	rule.DefaultPointer(&spec.StorageCapacity, false)
	rule.DefaultPointer(&spec.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	if len(spec.VolumeLifecycleModes) == 0 {
		spec.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
	rule.DefaultPointer(&spec.RequiresRepublish, false)
	rule.DefaultPointer(&spec.SELinuxMount, false)
	rule.DefaultPointer(&spec.PreventPodSchedulingIfMissing, false)
}

// prepareCSIDriverUpdate counts changes from zero: a new driver has no generation.
func prepareCSIDriverUpdate(driver, old *storagev1.CSIDriver) {
	if len(rule.Immutable(driver.Spec, old.Spec, nil)) > 0 {
		driver.Generation = old.Generation + 1
	}
}

// csiDriverWarnings is for tokens that volume attributes carry, which drivers log.
func csiDriverWarnings(driver, old *storagev1.CSIDriver) []string {
	same := old != nil && apiequality.Semantic.DeepEqual(driver.Spec.TokenRequests, old.Spec.TokenRequests)
	if same || len(driver.Spec.TokenRequests) == 0 || driver.Spec.ServiceAccountTokenInSecrets != nil {
		return nil
	}
	return []string{
		"spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes",
	}
}

func csiDriverColumns() []resource.Column[*storagev1.CSIDriver] {
	doc := storagev1.CSIDriverSpec{}.SwaggerDoc()
	return []resource.Column[*storagev1.CSIDriver]{
		column.Name[*storagev1.CSIDriver](),
		column.Bool(
			"AttachRequired",
			doc["attachRequired"],
			func(driver *storagev1.CSIDriver) bool { return ptr.Deref(driver.Spec.AttachRequired, true) },
		),
		column.Bool(
			"PodInfoOnMount",
			doc["podInfoOnMount"],
			func(driver *storagev1.CSIDriver) bool { return rule.IsTrue(driver.Spec.PodInfoOnMount) },
		),
		column.Bool(
			"StorageCapacity",
			doc["storageCapacity"],
			func(driver *storagev1.CSIDriver) bool { return rule.IsTrue(driver.Spec.StorageCapacity) },
		),
		column.Text("TokenRequests", doc["tokenRequests"], 0, func(driver *storagev1.CSIDriver) string {
			if driver.Spec.TokenRequests == nil {
				return column.Unset
			}
			var audiences []string
			for _, request := range driver.Spec.TokenRequests {
				audiences = append(audiences, request.Audience)
			}
			return strings.Join(audiences, ",")
		}),
		column.Bool(
			"RequiresRepublish",
			doc["requiresRepublish"],
			func(driver *storagev1.CSIDriver) bool { return rule.IsTrue(driver.Spec.RequiresRepublish) },
		),
		column.Text("Modes", doc["volumeLifecycleModes"], 0, func(driver *storagev1.CSIDriver) string {
			var modes []string
			for _, mode := range driver.Spec.VolumeLifecycleModes {
				modes = append(modes, string(mode))
			}
			return column.OrNone(strings.Join(modes, ","))
		}),
		column.Age[*storagev1.CSIDriver](),
	}
}

func validateCSIDriver(driver *storagev1.CSIDriver) field.ErrorList {
	spec, path := &driver.Spec, field.NewPath("spec")
	var errs field.ErrorList
	for _, flag := range []struct {
		name  string
		value *bool
	}{
		{"attachedRequired", spec.AttachRequired}, // upstream's spelling
		{"podInfoOnMount", spec.PodInfoOnMount},
		{"storageCapacity", spec.StorageCapacity},
		{"seLinuxMount", spec.SELinuxMount},
		{"preventPodSchedulingIfMissing", spec.PreventPodSchedulingIfMissing},
	} {
		if flag.value == nil {
			errs = append(errs, field.Required(path.Child(flag.name), ""))
		}
	}
	errs = append(errs, rule.OptionalOneOf(spec.FSGroupPolicy, groupPolicies, path.Child("fsGroupPolicy"))...)
	errs = append(errs, validateTokenRequests(spec.TokenRequests, path.Child("tokenRequests"))...)
	for _, mode := range spec.VolumeLifecycleModes {
		errs = append(errs, rule.OneOf(mode, lifecycleModes, path.Child("volumeLifecycleModes"))...)
	}
	if period := spec.NodeAllocatableUpdatePeriodSeconds; period != nil && *period < updatePeriodSecondsMin {
		errs = append(
			errs,
			field.Invalid(path.Child("nodeAllocatableUpdatePeriodSeconds"), *period, "must be greater than or equal to 10 seconds"),
		)
	}
	if secrets := spec.ServiceAccountTokenInSecrets; secrets != nil && len(spec.TokenRequests) == 0 {
		errs = append(
			errs,
			field.Invalid(
				path.Child("serviceAccountTokenInSecrets"),
				*secrets,
				"serviceAccountTokenInSecrets is set but no tokenRequests are specified",
			),
		)
	}
	return errs
}

// validateTokenRequests: one token for each audience.
func validateTokenRequests(requests []storagev1.TokenRequest, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	audiences := map[string]bool{}
	for i, request := range requests {
		at := path.Index(i)
		if audiences[request.Audience] {
			errs = append(errs, field.Duplicate(at.Child("audience"), request.Audience))
			continue
		}
		audiences[request.Audience] = true
		switch seconds := request.ExpirationSeconds; {
		case seconds == nil:
		case *seconds < tokenSecondsMin:
			errs = append(errs, field.Invalid(at.Child("expirationSeconds"), *seconds, "may not specify a duration less than 10 minutes"))
		case *seconds > tokenSecondsMax:
			errs = append(
				errs,
				field.Invalid(at.Child("expirationSeconds"), *seconds, "may not specify a duration larger than 2^32 seconds"),
			)
		}
	}
	return errs
}

func validateCSIDriverUpdate(driver, old *storagev1.CSIDriver) field.ErrorList {
	errs, path := validateCSIDriver(driver), field.NewPath("spec")
	errs = append(
		errs,
		validation.ValidateImmutableField(driver.Spec.AttachRequired, old.Spec.AttachRequired, path.Child("attachedRequired"))...)
	return append(
		errs,
		validation.ValidateImmutableField(
			driver.Spec.VolumeLifecycleModes,
			old.Spec.VolumeLifecycleModes,
			path.Child("volumeLifecycleModes"),
		)...)
}
