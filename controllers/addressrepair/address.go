package addressrepair

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// reconcileAddress deletes an IPAddress that was made for a Service and is that of none. Those that others manage stay.
func (c *controller) reconcileAddress(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	address, err := c.addresses.Get(key)
	if apierrors.IsNotFound(err) || err == nil && (!isManaged(address) || address.DeletionTimestamp != nil) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	ctx = reconcile.WithCause(ctx, address)
	if !isOfService(address) {
		return 0, c.discard(ctx, address, "IPAddressNotAllocated",
			"IPAddress %s appears to have been modified, not referencing a Service %v: cleaning up", address.Name, address.Spec.ParentRef)
	}
	parent := address.Spec.ParentRef
	s, err := c.services.Get(reconcile.Key{Namespace: parent.Namespace, Name: parent.Name})
	if err == nil && slices.Contains(s.Spec.ClusterIPs, address.Name) {
		return 0, nil
	}
	if s, err = c.env.Client.CoreV1().Services(parent.Namespace).Get(ctx, parent.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		s, err = nil, nil
	}
	if err != nil {
		c.env.Events.Eventf(address, corev1.EventTypeWarning, "UnknownError",
			"Unable to get parent Service for IPAddress %s due to an unknown error", address.Name)
		return 0, fmt.Errorf("get Service %s/%s: %w", parent.Namespace, parent.Name, err)
	}
	if wait := waitFor(address, s, c.env.Now()); wait > 0 {
		return wait, nil
	}
	switch {
	case s == nil:
		return 0, c.discard(ctx, address, "IPAddressNotAllocated",
			"IPAddress: %s for Service %s/%s appears to have leaked: cleaning up", address.Name, parent.Namespace, parent.Name)
	case slices.Contains(s.Spec.ClusterIPs, address.Name):
		return 0, nil
	}
	return 0, c.discard(ctx, address, "IPAddressWrongReference",
		"IPAddress: %s for Service %s/%s has a wrong reference; cleaning up", address.Name, s.Namespace, s.Name)
}

// waitFor is how long the Service, nil if there is none, may take to have the address.
func waitFor(address *networkingv1.IPAddress, s *corev1.Service, now time.Time) time.Duration {
	age := now.Sub(address.CreationTimestamp.Time)
	switch {
	case s == nil, s.Spec.Type == corev1.ServiceTypeExternalName:
		return grace - age
	case address.CreationTimestamp.After(s.CreationTimestamp.Time):
		return freshGrace - age
	}
	return 0
}

// discard tells why an IPAddress goes, and deletes it unless it has changed. The change brings the next pass.
func (c *controller) discard(ctx context.Context, address *networkingv1.IPAddress, reason, format string, args ...any) error {
	now, err := c.env.Client.NetworkingV1().IPAddresses().Get(ctx, address.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (now.UID != address.UID || now.ResourceVersion != address.ResourceVersion) {
		return nil
	}
	if err != nil {
		return err
	}
	c.env.Events.Eventf(address, corev1.EventTypeWarning, reason, format, args...)
	return c.remove(ctx, address)
}
