package admission

import (
	"context"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/servicerange"
)

// reservedAddresses refuses objects that claim addresses and ports of machines which are the cluster's own: whoever has the port of a
// server at its address is asked in its place. What an object had before it may keep, so that it can be changed and deleted; nodes do not
// serve it.
type reservedAddresses struct {
	book    *reserved.Book
	ranges  objects[*networkingv1.ServiceCIDR]
	network objects[*corev1.ConfigMap]
}

func newReservedAddresses(store *storage.Store, book *reserved.Book) reservedAddresses {
	if book == nil {
		book = reserved.New()
	}
	return reservedAddresses{
		book:    book,
		ranges:  objectsOf[*networkingv1.ServiceCIDR](store, networkingv1.SchemeGroupVersion.WithResource("servicecidrs")),
		network: objectsOf[*corev1.ConfigMap](store, corev1.SchemeGroupVersion.WithResource("configmaps")),
	}
}

// Handles implements admission.Interface.
func (reservedAddresses) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// Validate implements admission.ValidationInterface.
func (r reservedAddresses) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	claims := newClaims(a)
	if len(claims) == 0 {
		return nil
	}
	judge, err := r.judgeOf(ctx, a.GetObject())
	if err != nil {
		return err
	}
	var errs field.ErrorList
	for _, c := range claims {
		if holding, taken := judge(c); taken {
			errs = append(errs, field.Invalid(c.Path, c.Value, holding.String()))
		}
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
}

// newClaims are those that the object did not have before. Endpoints that the control plane finds by itself are where its pods are.
func newClaims(a admission.Attributes) (fresh []reserved.Claim) {
	claims := claimsOf(a.GetObject(), a)
	if len(claims) == 0 {
		return nil
	}
	had := map[reserved.ID]bool{}
	for _, c := range claimsOf(a.GetOldObject(), a) {
		had[c.ID()] = true
	}
	for _, c := range claims {
		if !had[c.ID()] {
			fresh = append(fresh, c)
		}
	}
	return fresh
}

func claimsOf(o runtime.Object, a admission.Attributes) []reserved.Claim {
	whole := a.GetSubresource() == ""
	switch o := o.(type) {
	case *corev1.Service:
		return reserved.OfService(o)
	case *corev1.Pod:
		if whole && a.GetOperation() == admission.Create {
			return reserved.OfPod(o)
		}
	case *discoveryv1.EndpointSlice:
		if !auth.IsServer(a.GetUserInfo()) {
			return reserved.OfSlice(o)
		}
	case *corev1.Endpoints:
		if !auth.IsServer(a.GetUserInfo()) {
			return reserved.OfEndpoints(o)
		}
	}
	return nil
}

type judge func(reserved.Claim) (reserved.Holding, bool)

// judgeOf is how claims of such an object are judged: a Service takes what is sent to an address, a host port what is sent to any address
// of its node, and an endpoint gets what others send there. A node refuses host ports that it has itself, so what one node says keeps no
// pod from the others.
func (r reservedAddresses) judgeOf(ctx context.Context, o runtime.Object) (judge, error) {
	switch o := o.(type) {
	case *corev1.Service:
		return func(c reserved.Claim) (reserved.Holding, bool) {
			holding, taken := r.book.At(c.Address, c.Port)
			return holding, taken && !holding.IsNodePortOf(o)
		}, r.readRanges(ctx)
	case *corev1.Pod:
		return func(c reserved.Claim) (reserved.Holding, bool) { return r.book.Everywhere(c.Port) }, nil
	}
	return func(c reserved.Claim) (reserved.Holding, bool) { return r.book.Closed(c.Address, c.Port) }, nil
}

// readRanges tells the book from where Services and pods have their addresses.
func (r reservedAddresses) readRanges(ctx context.Context) error {
	cidrs, err := r.ranges.in(ctx, "")
	if err != nil {
		return err
	}
	all := []reserved.Range{{Prefix: servicerange.Default, Of: reserved.Services}}
	if len(cidrs) > 0 {
		all = nil
	}
	for _, cidr := range cidrs {
		for _, text := range cidr.Spec.CIDRs {
			prefix, _ := netip.ParsePrefix(text) // validated
			all = append(all, reserved.Range{Prefix: prefix, Of: reserved.Services})
		}
	}
	inForce, found, err := r.network.at(ctx, "0", metav1.NamespaceSystem, servicerange.ConfigMap)
	if err != nil {
		return err
	}
	if found {
		four, six, _ := servicerange.Split(inForce.Data[servicerange.ConfigMapPodsKey])
		all = append(all, reserved.Range{Prefix: four, Of: reserved.Pods}, reserved.Range{Prefix: six, Of: reserved.Pods})
	}
	r.book.SetRanges(all...)
	return nil
}
