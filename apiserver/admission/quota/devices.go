package quota

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"

	kind "github.com/setpoint-io/setpoint/apiserver/resource"
)

// isDeviceResource: devices by their class, such as gold.deviceclass.resource.k8s.io/devices.
func isDeviceResource(name corev1.ResourceName) bool {
	return strings.HasSuffix(string(name), corev1.ResourceClaimsPerClass)
}

// deviceUsage is as many devices of each class as a ResourceClaim may get.
func deviceUsage(obj kind.Object) corev1.ResourceList {
	claim, ok := obj.(*resourcev1.ResourceClaim)
	if !ok {
		return nil
	}
	used := corev1.ResourceList{}
	for _, request := range claim.Spec.Devices.Requests {
		used = quotav1.Add(used, requestedDevices(request))
	}
	return used
}

// requestedDevices are those of one request. Of alternatives the largest number counts for each class, since only one will be chosen.
func requestedDevices(request resourcev1.DeviceRequest) corev1.ResourceList {
	if r := request.Exactly; r != nil {
		return devicesOf(r.DeviceClassName, r.AllocationMode, r.Count)
	}
	most := corev1.ResourceList{}
	for _, r := range request.FirstAvailable {
		maps.Copy(most, quotav1.Max(most, devicesOf(r.DeviceClassName, r.AllocationMode, r.Count)))
	}
	return most
}

// devicesOf are so many of a class; who asks for all of them may get as many as a claim can have.
func devicesOf(class string, mode resourcev1.DeviceAllocationMode, count int64) corev1.ResourceList {
	if mode == resourcev1.DeviceAllocationModeAll {
		count = resourcev1.AllocationResultsMaxSize
	}
	return corev1.ResourceList{corev1.ResourceName(class + corev1.ResourceClaimsPerClass): *resource.NewQuantity(count, resource.DecimalSI)}
}
