package addressrepair

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// reconcileService makes sure that each address of a Service has an IPAddress that names the Service.
func (c *controller) reconcileService(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	s, err := c.services.Get(key)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || !hasAddress(s) || s.DeletionTimestamp != nil {
		return 0, err
	}
	ranges, err := c.ranges.List("", nil)
	if err != nil {
		return 0, err
	}
	if len(ranges) == 0 {
		return rangePause, nil // the cluster's own is not there yet
	}
	ctx = reconcile.WithCause(ctx, s)
	for _, ip := range s.Spec.ClusterIPs {
		if err := c.check(ctx, s, ip, ranges); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

func hasAddress(s *corev1.Service) bool {
	return s.Spec.ClusterIP != "" && s.Spec.ClusterIP != corev1.ClusterIPNone
}

func (c *controller) check(ctx context.Context, s *corev1.Service, text string, ranges []*networkingv1.ServiceCIDR) error {
	ip, err := netip.ParseAddr(text)
	if err != nil {
		c.warn(s, "ClusterIPNotValid", "Cluster IP %s is not a valid IP; please recreate Service", text)
		return nil
	}
	if !slices.ContainsFunc(ranges, func(r *networkingv1.ServiceCIDR) bool { return holds(r, ip) }) {
		c.warn(s, "ClusterIPOutOfRange", "Cluster IP [%v]: %s is not within any configured Service CIDR; please recreate service",
			familyOf(ip), ip)
		return nil
	}
	address, err := c.addresses.Get(reconcile.Key{Name: ip.String()})
	if err == nil && isRight(address, s) {
		return nil
	}
	return c.repair(ctx, s, ip)
}

// repair looks at what is stored, which the caches may not know yet.
func (c *controller) repair(ctx context.Context, s *corev1.Service, ip netip.Addr) error {
	now, err := c.env.Client.CoreV1().Services(s.Namespace).Get(ctx, s.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (now.UID != s.UID || !slices.Contains(now.Spec.ClusterIPs, ip.String())) {
		return nil // the change brings the next pass
	}
	if err != nil {
		return err
	}
	address, err := c.env.Client.NetworkingV1().IPAddresses().Get(ctx, ip.String(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		c.warn(s, "ClusterIPNotAllocated", "Cluster IP [%v]: %s is not allocated; repairing", familyOf(ip), ip)
		return c.create(ctx, s, ip)
	case err != nil:
		c.warn(s, "UnknownError", "Unable to allocate ClusterIP [%v]: %s due to an unknown error", familyOf(ip), ip)
		return fmt.Errorf("get IPAddress %s: %w", ip, err)
	case isRight(address, s):
		return nil
	}
	other, err := c.otherOwner(ctx, address, s)
	if err != nil {
		return err
	}
	if other {
		c.warn(s, "ClusterIPAlreadyAllocated", "Cluster IP [%v]:%s was assigned to multiple services; please recreate service", familyOf(ip), ip)
		return nil
	}
	if !names(address, s) {
		c.warn(s, "ClusterIPNotAllocated", "the ClusterIP [%v]: %s for Service %s/%s has a wrong reference; repairing",
			familyOf(ip), ip, s.Namespace, s.Name)
	}
	if err := c.remove(ctx, address); err != nil {
		return err
	}
	return c.create(ctx, s, ip)
}

// otherOwner tells whether the IPAddress is that of another Service, which has it.
func (c *controller) otherOwner(ctx context.Context, address *networkingv1.IPAddress, s *corev1.Service) (bool, error) {
	if !isOfService(address) || names(address, s) {
		return false, nil
	}
	parent := address.Spec.ParentRef
	other, err := c.env.Client.CoreV1().Services(parent.Namespace).Get(ctx, parent.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && slices.Contains(other.Spec.ClusterIPs, address.Name), err
}

func (c *controller) create(ctx context.Context, s *corev1.Service, ip netip.Addr) error {
	_, err := c.env.Client.NetworkingV1().IPAddresses().Create(ctx, &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: ip.String(), Labels: map[string]string{
			networkingv1.LabelIPAddressFamily: string(familyOf(ip)), networkingv1.LabelManagedBy: manager,
		}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{Resource: "services", Namespace: s.Namespace, Name: s.Name}},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create IPAddress %s: %w", ip, err)
	}
	return nil
}

// remove deletes an IPAddress as it was read.
func (c *controller) remove(ctx context.Context, address *networkingv1.IPAddress) error {
	err := c.env.Client.NetworkingV1().IPAddresses().Delete(ctx, address.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &address.UID, ResourceVersion: &address.ResourceVersion},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete IPAddress %s: %w", address.Name, err)
	}
	return nil
}

func (c *controller) warn(s *corev1.Service, reason, format string, args ...any) {
	c.env.Events.Eventf(s, corev1.EventTypeWarning, reason, format, args...)
}

// isRight tells whether the IPAddress is what the API makes for the Service.
func isRight(address *networkingv1.IPAddress, s *corev1.Service) bool {
	ip, err := netip.ParseAddr(address.Name)
	return err == nil && names(address, s) && isManaged(address) &&
		address.Labels[networkingv1.LabelIPAddressFamily] == string(familyOf(ip))
}

// names tells whether the IPAddress names the Service.
func names(address *networkingv1.IPAddress, s *corev1.Service) bool {
	return isOfService(address) && address.Spec.ParentRef.Namespace == s.Namespace && address.Spec.ParentRef.Name == s.Name
}

// holds tells whether Services can get the address from the range.
func holds(r *networkingv1.ServiceCIDR, ip netip.Addr) bool {
	return slices.ContainsFunc(r.Spec.CIDRs, func(text string) bool {
		prefix, err := netip.ParsePrefix(text)
		return err == nil && prefix.Contains(ip) && prefix.Masked().Addr() != ip
	})
}

func familyOf(ip netip.Addr) corev1.IPFamily {
	if ip.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}
