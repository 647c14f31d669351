package controllers

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// deviceUser is a pod with a claim from a template and a claim of its user's. It is bound without the scheduler, so that its
// claims are reserved for it. The names of claims follow from its uid.
func deviceUser() *corev1.Pod {
	p := podOn("node-0", "user")
	p.UID = "of-user"
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{
		{Name: "gpu", ResourceClaimTemplateName: new("web")}, {Name: "disk", ResourceClaimName: new("web")},
	}
	return p
}

// allocate plays the scheduler: while the pod runs its claims have devices.
func allocate(w *reconciletest.World) {
	for _, p := range w.Pods("ns") {
		if podstate.Finished(&p) {
			return
		}
	}
	for _, o := range w.Objects()[resourcev1.SchemeGroupVersion.WithResource("resourceclaims")] {
		if claim := o.(*resourcev1.ResourceClaim); claim.Status.Allocation == nil {
			reconciletest.Edit(w, claim, func(c *resourcev1.ResourceClaim) {
				c.Finalizers = []string{resourcev1.Finalizer}
				c.Status.Allocation = deviceOf(c.Name)
			})
		}
	}
}

var devices = []scenario{{
	name:        "devices of a pod",
	controllers: []string{"resource_claim"},
	steps: []func(w *reconciletest.World){
		added(&resourcev1.ResourceClaimTemplate{ObjectMeta: web()}, &resourcev1.ResourceClaim{ObjectMeta: web()}, deviceUser()),
		func(w *reconciletest.World) {
			reconciletest.Edit(w, deviceUser(), func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
		},
		func(w *reconciletest.World) { w.Delete(&resourcev1.ResourceClaim{ObjectMeta: web()}) },
	},
	machines: allocate,
}, {
	name:        "tainted device",
	controllers: []string{"device-taint-eviction-controller"},
	steps: []func(w *reconciletest.World){
		func(w *reconciletest.World) {
			claim := &resourcev1.ResourceClaim{ObjectMeta: web()}
			claim.Status.Allocation = deviceOf("d")
			claim.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "user", UID: "of-user"}}
			user := deviceUser()
			user.Spec.ResourceClaims = user.Spec.ResourceClaims[1:]
			added(poolOf("d"), claim, user, taintRule(resourcev1.DeviceTaintEffectNone))(w)
		},
		func(w *reconciletest.World) {
			reconciletest.Edit(w, taintRule(""), func(r *resourcev1.DeviceTaintRule) { r.Spec.Taint.Effect = resourcev1.DeviceTaintEffectNoExecute })
		},
		func(w *reconciletest.World) { w.Delete(taintRule("")) },
	},
	// Evictions are counted by each term for itself.
	ends: func(line string) bool { return !strings.HasPrefix(line, "devicetaintrules ") },
}}

// taintRule taints all devices.
func taintRule(effect resourcev1.DeviceTaintEffect) *resourcev1.DeviceTaintRule {
	return &resourcev1.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: resourcev1.DeviceTaintRuleSpec{
		DeviceSelector: &resourcev1.DeviceTaintSelector{}, Taint: resourcev1.DeviceTaint{Key: "k", Effect: effect},
	}}
}

// poolOf is a pool of one device.
func poolOf(device string) *resourcev1.ResourceSlice {
	return &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: resourcev1.ResourceSliceSpec{
		Driver: "d", Pool: resourcev1.ResourcePool{Name: "p"}, Devices: []resourcev1.Device{{Name: device}},
	}}
}

// deviceOf is the allocation of a device of the pool.
func deviceOf(device string) *resourcev1.AllocationResult {
	return &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
		Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "d", Pool: "p", Device: device}},
	}}
}
