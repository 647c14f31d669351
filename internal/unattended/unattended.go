// Package unattended lists the kinds and fields that the API accepts although nothing in Setpoint acts on them
// yet, so that users are told.
//
// It owns the list of kinds and the judgement of a Service's fields; podfields does the same for pods. The API adds what
// it says as a warning to the answer of a create (apiserver/rest), and controllers/unattended writes it as an event on
// the object. The two worlds meet in it, so it imports nothing but the types of the API.
//
// It promises: it is pure, and each text fits into a Warning header (120 characters). A test in package controllers fails
// when a controller has come whose kind is still listed: whoever writes one takes its line away.
package unattended

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reason is the reason of the events.
const Reason = "NobodyActs"

// Kind is one on which nobody acts.
type Kind struct {
	Resource schema.GroupVersionResource
	Name     string // the kind's
	// Controller is the folder below controllers/ in which its controller will be.
	Controller string
	// Text says what does not happen.
	Text string
}

// Kinds are all of them.
func Kinds() []Kind {
	kind := func(group, version, name, resource, controller, text string) Kind {
		return Kind{schema.GroupVersionResource{Group: group, Version: version, Resource: resource}, name, controller, text}
	}
	return []Kind{
		kind("networking.k8s.io", "v1", "Ingress", "ingresses", "ingress", "Setpoint does not act on Ingresses: they need an ingress controller of your own"),
		kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "networkpolicy", "Setpoint does not enforce NetworkPolicies yet: all pods reach each other"),
	}
}

// Text is what does not happen to objects of a resource, in any version; empty if somebody acts on them.
func Text(resource schema.GroupResource) string {
	for _, k := range Kinds() {
		if k.Resource.GroupResource() == resource {
			return k.Text
		}
	}
	return ""
}

// Service says which fields of a Service lead nowhere.
func Service(spec *corev1.ServiceSpec) []string {
	var texts []string
	add := func(holds bool, text string) {
		if holds {
			texts = append(texts, text)
		}
	}
	add(spec.Type == corev1.ServiceTypeNodePort, "spec.type: Setpoint opens no node ports yet: the Service is reached at its cluster address only")
	add(spec.Type == corev1.ServiceTypeLoadBalancer, "spec.type: Setpoint gives no load balancer addresses yet: the Service is reached at its cluster address only")
	add(spec.Type == corev1.ServiceTypeExternalName, "spec.type: Setpoint has no cluster DNS yet: nobody answers for the Service's name")
	add(len(spec.ExternalIPs) > 0, "spec.externalIPs: not translated by Setpoint yet")
	add(spec.SessionAffinity == corev1.ServiceAffinityClientIP, "spec.sessionAffinity: not kept by Setpoint yet: each connection goes to any endpoint")
	// A traffic policy of what comes from outside matters only with the types above.
	add(spec.InternalTrafficPolicy != nil && *spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal,
		"spec.internalTrafficPolicy: not kept by Setpoint yet: connections go to endpoints of all nodes")
	return texts
}
