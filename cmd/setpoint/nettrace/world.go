package nettrace

import (
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/net/dns/records"
	"github.com/setpoint-io/setpoint/apiserver/explain"
)

// World is what the API says.
type World struct {
	Nodes          []*corev1.Node
	Pods           []*corev1.Pod
	Services       []*corev1.Service
	EndpointSlices []*discoveryv1.EndpointSlice
	Namespaces     []*corev1.Namespace
	Policies       []*networkingv1.NetworkPolicy
	// Lookup asks for a name that is not the cluster's.
	Lookup func(name string) ([]netip.Addr, error)
}

var _ records.View = (*World)(nil)

func find[T metav1.Object](all []T, namespace, name string) (found T) {
	i := slices.IndexFunc(all, func(o T) bool { return o.GetNamespace() == namespace && o.GetName() == name })
	if i >= 0 {
		found = all[i]
	}
	return found
}

// Service implements records.View.
func (w *World) Service(namespace, name string) *corev1.Service {
	return find(w.Services, namespace, name)
}

// HasServices implements records.View.
func (w *World) HasServices(namespace string) bool {
	return slices.ContainsFunc(w.Services, func(s *corev1.Service) bool { return s.Namespace == namespace })
}

// Slices implements records.View.
func (w *World) Slices(namespace, name string) (all []*discoveryv1.EndpointSlice) {
	for _, slice := range w.EndpointSlices {
		if slice.Namespace == namespace && slice.Labels[discoveryv1.LabelServiceName] == name {
			all = append(all, slice)
		}
	}
	return all
}

// ServicesAt implements records.View.
func (w *World) ServicesAt(address netip.Addr) (all []*corev1.Service) {
	for _, s := range w.Services {
		if slices.Contains(clusterAddresses(s), address) {
			all = append(all, s)
		}
	}
	return all
}

// SlicesAt implements records.View. Only names of addresses need it, which nobody traces.
func (w *World) SlicesAt(netip.Addr) []*discoveryv1.EndpointSlice { return nil }

// node by name; nil if there is none.
func (w *World) node(name string) *corev1.Node { return find(w.Nodes, "", name) }

// podAt is the pod of an address that has not ended; pods on their node's network have none of their own.
func (w *World) podAt(address netip.Addr) *corev1.Pod {
	for _, p := range w.Pods {
		if !p.Spec.HostNetwork && !ended(p) && slices.Contains(addressesOf(p), address) {
			return p
		}
	}
	return nil
}

// nodeAt is the node with an address.
func (w *World) nodeAt(address netip.Addr) *corev1.Node {
	for _, n := range w.Nodes {
		has := func(a corev1.NodeAddress) bool { return slices.Contains(parsed(a.Address), address) }
		if slices.ContainsFunc(n.Status.Addresses, has) || slices.Contains(bridgeAddresses(n), address) {
			return n
		}
	}
	return nil
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// explained is the part of explain.World that the explanation of a Service reads.
type explained struct{ *World }

var _ explain.World = explained{}

func (w explained) Now() time.Time { return time.Time{} }

func (w explained) Get(o explain.Object) metav1.Object {
	for _, candidate := range w.List(explain.Kind{Name: o.Kind, Group: o.Group, Resource: o.Resource}, o.Namespace) {
		if candidate.GetName() == o.Name {
			return candidate
		}
	}
	return nil
}

func (w explained) List(kind explain.Kind, namespace string) (all []metav1.Object) {
	switch kind {
	case explain.Pods:
		all = asObjects(w.Pods)
	case explain.Services:
		all = asObjects(w.Services)
	case explain.Nodes:
		all = asObjects(w.Nodes)
	case explain.Namespaces:
		all = asObjects(w.Namespaces)
	}
	return slices.DeleteFunc(all, func(o metav1.Object) bool { return namespace != "" && o.GetNamespace() != namespace })
}

func asObjects[T metav1.Object](all []T) []metav1.Object {
	objects := make([]metav1.Object, len(all))
	for i := range all {
		objects[i] = all[i]
	}
	return objects
}

func (explained) Left(string, int) []explain.Named         { return nil }
func (explained) Judge(*corev1.Pod) explain.Judgement      { return explain.Judgement{} }
func (explained) Write(uint64) (explain.Write, bool)       { return explain.Write{}, false }
func (explained) Failing(explain.Object) []explain.Failure { return nil }
