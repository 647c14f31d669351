package firstclaims

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// syncTimeMax is how long a change waits for the caches of a server that has just started.
const syncTimeMax = 10 * time.Second

// Plugin judges changes of Services and Ingresses.
type Plugin struct {
	Services  corelisters.ServiceLister
	Ingresses networkinglisters.IngressLister
	Classes   networkinglisters.IngressClassLister
	// Reserved knows which addresses are nodes'.
	Reserved *reserved.Book
	// Synced tell whether all these have what was stored when the server started.
	Synced []cache.InformerSynced
	// AtNodes says that Services of the type LoadBalancer get the nodes' addresses, so that they share their ports.
	AtNodes bool
}

// Name is what its time is measured under.
func (Plugin) Name() string { return "FirstClaims" }

// Handles implements admission.Interface.
func (Plugin) Handles(op admission.Operation) bool { return op == admission.Update }

// Validate implements admission.ValidationInterface.
func (p Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || auth.IsServer(a.GetUserInfo()) {
		return nil
	}
	var errs field.ErrorList
	var err error
	switch now := a.GetObject().(type) {
	case *corev1.Service:
		errs, err = p.service(ctx, now, a.GetOldObject().(*corev1.Service))
	case *networkingv1.Ingress:
		errs, err = p.ingress(ctx, now, a.GetOldObject().(*networkingv1.Ingress))
	}
	if err != nil || len(errs) == 0 {
		return err
	}
	return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
}

// service judges what is not held so far. Who claims the same as before gets nothing by the change.
func (p Plugin) service(ctx context.Context, now, old *corev1.Service) (field.ErrorList, error) {
	wanted, before := p.claimsOfService(now), p.claimsOfService(old)
	if len(newOf(wanted, before)) == 0 && len(newOf(before, wanted)) == 0 {
		return nil, nil
	}
	fresh := newOf(wanted, p.heldByService(old))
	if len(fresh) == 0 {
		return nil, nil
	}
	if err := p.sync(ctx); err != nil {
		return nil, err
	}
	all, err := p.Services.List(labels.Everything())
	return world[*corev1.Service]{"Service", all, p.heldByService, olderService, p.Reserved}.refusals(now, old, fresh), err
}

func (p Plugin) ingress(ctx context.Context, now, old *networkingv1.Ingress) (field.ErrorList, error) {
	if err := p.sync(ctx); err != nil {
		return nil, err
	}
	classes, err := p.Classes.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	claims := func(i *networkingv1.Ingress) []claim { return claimsOfIngress(i, classes) }
	fresh := newOf(claims(now), claims(old))
	if len(fresh) == 0 {
		return nil, nil
	}
	all, err := p.Ingresses.List(labels.Everything())
	return world[*networkingv1.Ingress]{"Ingress", all, claims, olderIngress, p.Reserved}.refusals(now, old, fresh), err
}

// sync waits for the caches: an empty one would let every change pass.
func (p Plugin) sync(ctx context.Context) error {
	if !slices.ContainsFunc(p.Synced, func(synced cache.InformerSynced) bool { return !synced() }) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, syncTimeMax)
	defer cancel()
	if cache.WaitForCacheSync(ctx.Done(), p.Synced...) {
		return nil
	}
	return apierrors.NewServiceUnavailable("this server has just started and does not know yet what other Services and Ingresses have: try again")
}
