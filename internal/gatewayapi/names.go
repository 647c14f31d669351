package gatewayapi

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	v1 "sigs.k8s.io/gateway-api/apis/v1"
)

const (
	// Controller is that of the GatewayClasses whose Gateways are served here.
	Controller = "setpoint.io/gateway"
	// ClassName is that of the class that is made.
	ClassName = "setpoint"
)

// GroupVersion is the one under which all kinds are read.
var GroupVersion = schema.GroupVersion{Group: v1.GroupName, Version: "v1"}

// Resource names one of the kinds: "gateways".
func Resource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: GroupVersion.Group, Version: GroupVersion.Version, Resource: plural}
}

// Reference is from an object of one namespace to one of another.
type Reference struct {
	// FromKind is of the Gateway API: "HTTPRoute".
	FromKind, FromNamespace string
	ToGroup, ToKind         string
	ToNamespace, ToName     string
}

// Permitted tells whether a reference stays in its namespace, or a grant in the other one allows it.
func Permitted(grants []*v1.ReferenceGrant, r Reference) bool {
	return r.FromNamespace == r.ToNamespace || slices.ContainsFunc(grants, func(g *v1.ReferenceGrant) bool {
		return g.Namespace == r.ToNamespace && slices.ContainsFunc(g.Spec.From, r.isFrom) && slices.ContainsFunc(g.Spec.To, r.isTo)
	})
}

func (r *Reference) isFrom(f v1.ReferenceGrantFrom) bool {
	return string(f.Group) == GroupVersion.Group && string(f.Kind) == r.FromKind && string(f.Namespace) == r.FromNamespace
}

func (r *Reference) isTo(t v1.ReferenceGrantTo) bool {
	return string(t.Group) == r.ToGroup && string(t.Kind) == r.ToKind && (t.Name == nil || *t.Name == "" || string(*t.Name) == r.ToName)
}

// SecretOf is what a listener of a Gateway or ListenerSet refers to as its certificate; false if that is no Secret.
func SecretOf(owner metav1.Object, ref *v1.SecretObjectReference) (Reference, bool) {
	r := Reference{
		FromKind: "Gateway", FromNamespace: owner.GetNamespace(),
		ToGroup: corev1.GroupName, ToKind: "Secret", ToNamespace: owner.GetNamespace(), ToName: string(ref.Name),
	}
	if _, isSet := owner.(*v1.ListenerSet); isSet {
		r.FromKind = "ListenerSet"
	}
	if ref.Namespace != nil {
		r.ToNamespace = string(*ref.Namespace)
	}
	return r, (ref.Group == nil || *ref.Group == corev1.GroupName) && (ref.Kind == nil || *ref.Kind == "Secret")
}

// Ours are the Gateways of classes whose controller is this one.
func Ours(o *Objects) []*v1.Gateway {
	classes := map[v1.ObjectName]bool{}
	for _, c := range o.Classes {
		classes[v1.ObjectName(c.Name)] = c.Spec.ControllerName == Controller
	}
	return slices.DeleteFunc(slices.Clone(o.Gateways), func(g *v1.Gateway) bool {
		return !classes[g.Spec.GatewayClassName] || g.DeletionTimestamp != nil
	})
}

// IsConfigMap tells whether a reference is to one.
func IsConfigMap(ref *v1.LocalObjectReference) bool {
	return ref.Group == corev1.GroupName && ref.Kind == "ConfigMap"
}

// Authorities are the ConfigMaps by which certificates are judged, if there are Gateways that are ours. They are sorted.
func Authorities(o *Objects) (names []types.NamespacedName) {
	if len(Ours(o)) == 0 {
		return nil
	}
	for _, p := range o.BackendTLSPolicies {
		for _, ref := range p.Spec.Validation.CACertificateRefs {
			if IsConfigMap(&ref) {
				names = append(names, types.NamespacedName{Namespace: p.Namespace, Name: string(ref.Name)})
			}
		}
	}
	return sorted(names)
}

func sorted(names []types.NamespacedName) []types.NamespacedName {
	slices.SortFunc(names, func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) })
	return slices.Compact(names)
}

// GatewayOf is the Gateway to which a ListenerSet adds.
func GatewayOf(set *v1.ListenerSet) (namespace, name string) {
	ref := &set.Spec.ParentRef
	if ref.Group != nil && *ref.Group != v1.GroupName || ref.Kind != nil && *ref.Kind != "Gateway" {
		return "", ""
	}
	if ref.Namespace != nil {
		return string(*ref.Namespace), string(ref.Name)
	}
	return set.Namespace, string(ref.Name)
}

// SecretNames are the Secrets that Gateways which are ours, and their ListenerSets, may read as certificates, sorted.
func SecretNames(o *Objects) (names []types.NamespacedName) {
	ours := map[types.NamespacedName]bool{}
	for _, g := range Ours(o) {
		ours[types.NamespacedName{Namespace: g.Namespace, Name: g.Name}] = true
		for i := range g.Spec.Listeners {
			names = append(names, secretsOf(o, g, g.Spec.Listeners[i].TLS)...)
		}
	}
	for _, set := range o.ListenerSets {
		if namespace, name := GatewayOf(set); !ours[types.NamespacedName{Namespace: namespace, Name: name}] {
			continue
		}
		for i := range set.Spec.Listeners {
			names = append(names, secretsOf(o, set, set.Spec.Listeners[i].TLS)...)
		}
	}
	return sorted(names)
}

func secretsOf(o *Objects, owner metav1.Object, config *v1.ListenerTLSConfig) (names []types.NamespacedName) {
	if config == nil {
		return nil
	}
	for i := range config.CertificateRefs {
		if ref, ok := SecretOf(owner, &config.CertificateRefs[i]); ok && Permitted(o.Grants, ref) {
			names = append(names, types.NamespacedName{Namespace: ref.ToNamespace, Name: ref.ToName})
		}
	}
	return names
}
