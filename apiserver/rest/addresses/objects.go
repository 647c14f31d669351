package addresses

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// manager is upstream's name of who writes the IPAddresses of Services.
const manager = "ipallocator.k8s.io"

var ipAddresses = networkingv1.SchemeGroupVersion.WithResource("ipaddresses")

// show keeps the IPAddresses of a Service's cluster addresses: in the transaction in which an address is claimed or given back.
// before or after is nil in a create or a deletion.
func show(v *storage.View, before, after *corev1.Service) error {
	has := addressesOf(after)
	for _, ip := range addressesOf(before) {
		if slices.Contains(has, ip) {
			continue
		}
		if err := hide(v, before, ip); err != nil {
			return err
		}
	}
	for _, ip := range has {
		shown, err := v.Snapshot(ipAddresses).Get("", ip)
		if err == nil && shown == nil {
			err = v.Add(ipAddresses, addressObject(after, ip, v.Now()))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func addressObject(s *corev1.Service, ip string, now time.Time) *networkingv1.IPAddress {
	return &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{
			Name: ip, UID: uuid.NewUUID(), CreationTimestamp: metav1.NewTime(now),
			Labels: map[string]string{networkingv1.LabelIPAddressFamily: string(familyOf(ip)), networkingv1.LabelManagedBy: manager},
		},
		Spec: networkingv1.IPAddressSpec{ParentRef: parentOf(s)},
	}
}

// hide deletes the IPAddress of a Service, unless it is somebody else's.
func hide(v *storage.View, s *corev1.Service, ip string) error {
	shown, err := v.Snapshot(ipAddresses).Get("", ip)
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

// isTheirs reports whether an IPAddress says that something other than the Service has the address.
func isTheirs(v *storage.View, ip string, s *corev1.Service) (bool, error) {
	shown, err := v.Snapshot(ipAddresses).Get("", ip)
	if shown == nil || err != nil {
		return false, err
	}
	return !isOf(shown.(*networkingv1.IPAddress), s), nil
}
