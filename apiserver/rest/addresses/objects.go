package addresses

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// manager is upstream's name of who writes the IPAddresses of Services.
const manager = "ipallocator.k8s.io"

var ipAddresses = networkingv1.SchemeGroupVersion.WithResource("ipaddresses")

// show keeps the IPAddress of a Service's cluster address: in the transaction in which the address is claimed or given back.
// before or after is nil in a create or a deletion.
func show(v *storage.View, before, after *corev1.Service) error {
	if before != nil && hasAddress(before) && (after == nil || !hasAddress(after) || after.Spec.ClusterIP != before.Spec.ClusterIP) {
		if err := hide(v, before); err != nil {
			return err
		}
	}
	if after == nil || !hasAddress(after) {
		return nil
	}
	if shown, err := v.Snapshot(ipAddresses).Get("", after.Spec.ClusterIP); shown != nil || err != nil {
		return err
	}
	return v.Add(ipAddresses, &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{
			Name: after.Spec.ClusterIP, UID: uuid.NewUUID(), CreationTimestamp: metav1.Now(),
			Labels: map[string]string{networkingv1.LabelIPAddressFamily: string(corev1.IPv4Protocol), networkingv1.LabelManagedBy: manager},
		},
		Spec: networkingv1.IPAddressSpec{ParentRef: parentOf(after)},
	})
}

// hide deletes the IPAddress of a Service, unless it is somebody else's.
func hide(v *storage.View, s *corev1.Service) error {
	shown, err := v.Snapshot(ipAddresses).Get("", s.Spec.ClusterIP)
	if err == nil && shown != nil && isOf(shown.(*networkingv1.IPAddress), s) {
		v.Remove(ipAddresses, shown)
	}
	return err
}

func parentOf(s *corev1.Service) *networkingv1.ParentReference {
	return &networkingv1.ParentReference{Resource: "services", Namespace: s.Namespace, Name: s.Name}
}

func isOf(address *networkingv1.IPAddress, s *corev1.Service) bool {
	return address.Spec.ParentRef != nil && *address.Spec.ParentRef == *parentOf(s)
}

// isElsewhere reports whether an IPAddress says that something other than the Service has the address.
func isElsewhere(v *storage.View, ip string, s *corev1.Service) (bool, error) {
	shown, err := v.Snapshot(ipAddresses).Get("", ip)
	if shown == nil || err != nil {
		return false, err
	}
	return !isOf(shown.(*networkingv1.IPAddress), s), nil
}
