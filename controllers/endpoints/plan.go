package endpoints

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/endpointslice"
	"k8s.io/endpointslice/util"
	utilnet "k8s.io/utils/net"

	"github.com/setpoint-io/setpoint/controllers/reconcile/serviceendpoints"
)

const (
	labelManagedBy = "endpoints.kubernetes.io/managed-by"
	controllerName = "endpoint-controller"
	// overCapacity is the value of the annotation while addresses are left out.
	overCapacity = "truncated"
)

// plan is what to write, or nil. current is nil if there are no Endpoints; trigger is when
// the change happened that led here, zero if none did.
func plan(service *corev1.Service, pods []*corev1.Pod, current *corev1.Endpoints, trigger time.Time) *corev1.Endpoints {
	subsets, truncated := truncate(subsetsOf(service, pods))
	labels := labelsOf(service)
	if current != nil && maps.Equal(current.Labels, labels) && sameSubsets(current.Subsets, subsets) &&
		isTruncated(current.Annotations) == truncated {
		return nil
	}
	next := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: service.Name, Namespace: service.Namespace}}
	if current != nil {
		next = current.DeepCopy()
	}
	next.Labels, next.Subsets = labels, subsets
	annotate(next, corev1.EndpointsLastChangeTriggerTime, trigger.UTC().Format(time.RFC3339Nano), !trigger.IsZero())
	annotate(next, corev1.EndpointsOverCapacity, overCapacity, truncated)
	return next
}

// subsetsOf are all addresses of the Service's pods.
func subsetsOf(service *corev1.Service, pods []*corev1.Pod) []corev1.EndpointSubset {
	var packer serviceendpoints.Packer
	for _, pod := range pods {
		if !util.ShouldPodBeInEndpoints(pod, service.Spec.PublishNotReadyAddresses) {
			continue
		}
		address, ok := addressOf(service, pod)
		if !ok {
			continue
		}
		ready := service.Spec.PublishNotReadyAddresses || util.IsPodReady(pod)
		if len(service.Spec.Ports) == 0 && service.Spec.ClusterIP == corev1.ClusterIPNone {
			packer.Add(address, nil, ready)
		}
		for i := range service.Spec.Ports {
			if port, ok := portOf(&service.Spec.Ports[i], pod); ok {
				packer.Add(address, &port, ready)
			}
		}
	}
	return packer.Subsets()
}

// addressOf is the pod's address of the Service's first family; false if it has none.
func addressOf(service *corev1.Service, pod *corev1.Pod) (corev1.EndpointAddress, bool) {
	ipv6 := wantsIPv6(service, pod)
	for _, podIP := range pod.Status.PodIPs {
		ip := utilnet.ParseIPSloppy(podIP.IP) // some were stored with leading zeros
		if ip == nil || utilnet.IsIPv6(ip) != ipv6 {
			continue
		}
		address := corev1.EndpointAddress{IP: ip.String(), NodeName: &pod.Spec.NodeName, TargetRef: &corev1.ObjectReference{
			Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID,
		}}
		if util.ShouldSetHostname(pod, service) {
			address.Hostname = pod.Spec.Hostname
		}
		return address, true
	}
	return corev1.EndpointAddress{}, false
}

func wantsIPv6(service *corev1.Service, pod *corev1.Pod) bool {
	switch {
	case len(service.Spec.IPFamilies) > 0:
		return service.Spec.IPFamilies[0] == corev1.IPv6Protocol
	case hasClusterIP(service):
		return utilnet.IsIPv6String(service.Spec.ClusterIP)
	}
	return utilnet.IsIPv6String(pod.Status.PodIP)
}

// portOf is the Service's port on this pod; false if the pod has no port of that name.
func portOf(port *corev1.ServicePort, pod *corev1.Pod) (corev1.EndpointPort, bool) {
	number, err := endpointslice.FindPort(pod, port)
	return corev1.EndpointPort{Name: port.Name, Port: int32(number), Protocol: port.Protocol, AppProtocol: port.AppProtocol}, err == nil
}

func hasClusterIP(service *corev1.Service) bool {
	return service.Spec.ClusterIP != "" && service.Spec.ClusterIP != corev1.ClusterIPNone
}

func labelsOf(service *corev1.Service) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, service.Labels)
	delete(labels, corev1.IsHeadlessService)
	if !hasClusterIP(service) {
		labels[corev1.IsHeadlessService] = ""
	}
	labels[labelManagedBy] = controllerName
	return labels
}

// ignoreVersion takes references to two versions of an object for the same.
var ignoreVersion = conversion.EqualitiesOrDie(func(a, b corev1.ObjectReference) bool {
	a.ResourceVersion, b.ResourceVersion = "", ""
	return a == b
})

// sameSubsets takes another order, as other versions write it, for the same.
func sameSubsets(have, want []corev1.EndpointSubset) bool {
	return ignoreVersion.DeepEqual(have, want) || ignoreVersion.DeepEqual(serviceendpoints.Repack(have), want)
}

func isTruncated(annotations map[string]string) bool {
	_, ok := annotations[corev1.EndpointsOverCapacity]
	return ok
}

// annotate sets or removes one annotation.
func annotate(e *corev1.Endpoints, name, value string, set bool) {
	if !set {
		delete(e.Annotations, name)
		return
	}
	if e.Annotations == nil {
		e.Annotations = map[string]string{}
	}
	e.Annotations[name] = value
}
