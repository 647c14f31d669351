package admission

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestAdminAccess(t *testing.T) {
	marked := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns", Labels: map[string]string{resourcev1.DRAAdminNamespaceLabelKey: "true"}}}
	plain := &corev1.Namespace{ObjectMeta: named("ns")}
	asking := resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{
		{Name: "a"}, {Name: "b", Exactly: &resourcev1.ExactDeviceRequest{AdminAccess: new(true)}},
	}}}
	claim := &resourcev1.ResourceClaim{ObjectMeta: inNS("c"), Spec: asking}
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: inNS("c"), Spec: resourcev1.ResourceClaimTemplateSpec{Spec: asking}}
	modest := &resourcev1.ResourceClaim{ObjectMeta: inNS("c")}
	granted := modest.DeepCopy()
	granted.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{{AdminAccess: new(true)}}}}
	const words = "adminAccess: Forbidden: admin access to devices requires the `resource.kubernetes.io/admin-access: true` label on the containing namespace"
	for name, c := range map[string]struct {
		namespace *corev1.Namespace
		r         request
		want      string
	}{
		"where it is allowed": {marked, request{obj: claim}, ""},
		"elsewhere":           {plain, request{obj: claim}, "spec.devices.requests[1]." + words},
		"a template":          {plain, request{obj: template}, "spec.devices.requests[1]." + words},
		"without":             {plain, request{obj: modest}, ""},
		"a later label":       {plain, request{obj: claim, old: claim}, ""},
		"granted":             {plain, request{obj: granted, old: modest, subresource: "status"}, "status.allocation.devices.results[0]." + words},
		"granted, allowed":    {marked, request{obj: granted, old: modest, subresource: "status"}, ""},
		"granted before":      {plain, request{obj: granted, old: granted, subresource: "status"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, newWorld(t, allowAll, c.namespace).admit(t, c.r), c.want)
		})
	}
}
