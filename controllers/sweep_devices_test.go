package controllers

import (
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

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
				c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
					Results: []resourcev1.DeviceRequestAllocationResult{{Request: "r", Driver: "d", Pool: "p", Device: c.Name}},
				}}
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
}}
