package firstroutes

import (
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/gateway-api/apis/v1"
)

// classAnnotation names the class of an Ingress that has none in its spec.
const classAnnotation = "kubernetes.io/ingress.class"

// claims is the part of an object by which it can have hosts or ports: a change of anything else takes nothing, and is not judged.
func claims(o metav1.Object) any {
	switch o := o.(type) {
	case *v1.Gateway:
		return o.Spec
	case *v1.ListenerSet:
		return o.Spec
	case *v1.HTTPRoute:
		return ofRoute{o.Spec.ParentRefs, o.Spec.Hostnames}
	case *v1.GRPCRoute:
		return ofRoute{o.Spec.ParentRefs, o.Spec.Hostnames}
	case *v1.TLSRoute:
		return ofRoute{o.Spec.ParentRefs, o.Spec.Hostnames}
	case *networkingv1.Ingress:
		return ofIngress{o.Spec, o.Annotations[classAnnotation]}
	}
	return nil
}

// ofRoute is that of all kinds of routes.
type ofRoute struct {
	Parents   []v1.ParentReference
	Hostnames []v1.Hostname
}

type ofIngress struct {
	Spec  networkingv1.IngressSpec
	Class string
}
