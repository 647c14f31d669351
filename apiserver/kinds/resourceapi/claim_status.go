package resourceapi

import (
	"context"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// A deviceID names a device, or a share of one. Messages show its fields.
type deviceID struct{ Driver, Pool, Device, ShareID string }

func statusID(device resourcev1.AllocatedDeviceStatus) deviceID {
	return deviceID{device.Driver, device.Pool, device.Device, ptr.Deref(device.ShareID, "")}
}

func allocated(allocation *resourcev1.AllocationResult) map[deviceID]bool {
	ids := map[deviceID]bool{}
	if allocation == nil {
		return ids
	}
	for _, result := range allocation.Devices.Results {
		ids[deviceID{result.Driver, result.Pool, result.Device, string(ptr.Deref(result.ShareID, ""))}] = true
	}
	return ids
}

func validateClaimStatus(claim, old *resourcev1.ResourceClaim) field.ErrorList {
	status, path := &claim.Status, field.NewPath("status")
	errs := validateReservations(claim, old, path.Child("reservedFor"))
	ids := allocated(status.Allocation)
	errs = append(
		errs,
		validateSet(status.Devices, 0, statusID, func(device resourcev1.AllocatedDeviceStatus, at *field.Path) field.ErrorList {
			return validateDeviceStatus(&device, ids, at)
		}, path.Child("devices"))...)
	switch at := path.Child("allocation"); {
	case status.Allocation == nil:
	case old.Status.Allocation == nil:
		errs = append(errs, validateAllocation(status.Allocation, requestNames(&claim.Spec.Devices), at)...)
	default:
		errs = append(errs, validation.ValidateImmutableField(status.Allocation, old.Status.Allocation, at)...)
	}
	return errs
}

// validateReservations: a claim in deletion gets no new users.
func validateReservations(claim, old *resourcev1.ResourceClaim, path *field.Path) field.ErrorList {
	users := claim.Status.ReservedFor
	errs := validateSet(users, resourcev1.ResourceClaimReservedForMaxSize,
		func(user resourcev1.ResourceClaimConsumerReference) types.UID { return user.UID },
		func(user resourcev1.ResourceClaimConsumerReference, at *field.Path) field.ErrorList {
			missing := rule.Required(user.Resource, at.Child("resource"))
			missing = append(missing, rule.Required(user.Name, at.Child("name"))...)
			return append(missing, rule.Required(string(user.UID), at.Child("uid"))...)
		}, path)
	added := func(user resourcev1.ResourceClaimConsumerReference) bool {
		return !slices.Contains(old.Status.ReservedFor, user)
	}
	switch {
	case len(users) == 0:
	case claim.Status.Allocation == nil:
		errs = append(errs, field.Forbidden(path, "may not be specified when `allocated` is not set"))
	case claim.DeletionTimestamp != nil && slices.ContainsFunc(users, added):
		errs = append(
			errs,
			field.Forbidden(path, "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"),
		)
	}
	return errs
}

func validateDeviceStatus(device *resourcev1.AllocatedDeviceStatus, ids map[deviceID]bool, path *field.Path) field.ErrorList {
	errs := validateDriver(device.Driver, path.Child("driver"))
	errs = append(errs, validatePool(device.Pool, path.Child("pool"))...)
	errs = append(errs, rule.Label(device.Device, path.Child("device"))...)
	if device.ShareID != nil {
		errs = append(errs, validateShare(*device.ShareID, path.Child("shareID"))...)
	}
	if id := statusID(*device); !ids[id] {
		errs = append(errs, field.Invalid(path, id, "must be an allocated device in the claim"))
	}
	if n := len(device.Conditions); n > resourcev1.AllocatedDeviceStatusMaxConditions {
		errs = append(errs, field.TooMany(path.Child("conditions"), n, resourcev1.AllocatedDeviceStatusMaxConditions))
	}
	errs = append(errs, metav1validation.ValidateConditions(device.Conditions, path.Child("conditions"))...)
	if device.Data != nil && len(device.Data.Raw) > 0 {
		errs = append(errs, validateObject(*device.Data, false, resourcev1.AllocatedDeviceStatusDataMaxLength, path.Child("data"))...)
	}
	if device.NetworkData == nil {
		return errs
	}
	return append(errs, validateNetwork(device.NetworkData, path.Child("networkData"))...)
}

func validateShare(id string, path *field.Path) field.ErrorList {
	return validate.UUID(context.Background(), operation.Operation{}, path, &id, nil)
}

func validateNetwork(data *resourcev1.NetworkDeviceData, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if len(data.InterfaceName) > resourcev1.NetworkDeviceDataInterfaceNameMaxLength {
		errs = append(errs, field.TooLong(path.Child("interfaceName"), "", resourcev1.NetworkDeviceDataInterfaceNameMaxLength))
	}
	if len(data.HardwareAddress) > resourcev1.NetworkDeviceDataHardwareAddressMaxLength {
		errs = append(errs, field.TooLong(path.Child("hardwareAddress"), "", resourcev1.NetworkDeviceDataHardwareAddressMaxLength))
	}
	return append(errs, validateSet(data.IPs, resourcev1.NetworkDeviceDataMaxIPs, itself, func(ip string, at *field.Path) field.ErrorList {
		return utilvalidation.IsValidInterfaceAddress(at, ip)
	}, path.Child("ips"))...)
}

func validateAllocation(allocation *resourcev1.AllocationResult, names map[string]bool, path *field.Path) field.ErrorList {
	at := path.Child("devices")
	errs := validateEach(
		allocation.Devices.Results,
		resourcev1.AllocationResultsMaxSize,
		func(result resourcev1.DeviceRequestAllocationResult, at *field.Path) field.ErrorList {
			return validateResult(&result, names, at)
		},
		at.Child("results"),
	)
	// The class and the claim may have as many each.
	errs = append(
		errs,
		validateEach(
			allocation.Devices.Config,
			2*resourcev1.DeviceConfigMaxSize,
			func(config resourcev1.DeviceAllocationConfiguration, at *field.Path) field.ErrorList {
				bad := rule.RequiredOneOf(
					config.Source,
					[]resourcev1.AllocationConfigSource{resourcev1.AllocationConfigSourceClaim, resourcev1.AllocationConfigSourceClass},
					at.Child("source"),
				)
				bad = append(bad, validateNameRefs(config.Requests, names, at.Child("requests"))...)
				return append(bad, validateConfig(&config.DeviceConfiguration, false, at)...)
			},
			at.Child("config"),
		)...)
	if allocation.NodeSelector != nil {
		errs = append(errs, podspec.NodeSelector(allocation.NodeSelector, path.Child("nodeSelector"))...)
		errs = append(errs, podspec.NodeSelectorValues(allocation.NodeSelector, path.Child("nodeSelector"))...)
	}
	return errs
}

func validateResult(result *resourcev1.DeviceRequestAllocationResult, names map[string]bool, path *field.Path) field.ErrorList {
	errs := validateNameRef(result.Request, names, path.Child("request"))
	errs = append(errs, validateDriver(result.Driver, path.Child("driver"))...)
	errs = append(errs, validatePool(result.Pool, path.Child("pool"))...)
	errs = append(errs, rule.Label(result.Device, path.Child("device"))...)
	errs = append(errs, validateBinding(result.BindingConditions, result.BindingFailureConditions, path)...)
	errs = append(
		errs,
		validateEach(result.Tolerations, resourcev1.DeviceTolerationsMaxLength, validateToleration, path.Child("tolerations"))...)
	if result.ShareID == nil {
		return errs
	}
	return append(errs, validateShare(string(*result.ShareID), path.Child("shareID"))...)
}
