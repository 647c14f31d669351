package firstclaims

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"

	"github.com/setpoint-io/setpoint/apiserver/auth"
)

// Plugin judges changes of Services and Ingresses.
type Plugin struct {
	Services  corelisters.ServiceLister
	Ingresses networkinglisters.IngressLister
	Classes   networkinglisters.IngressClassLister
	// AtNodes says that Services of the type LoadBalancer get the nodes' addresses, so that they share their ports.
	AtNodes bool
}

// Name is what its time is measured under.
func (Plugin) Name() string { return "FirstClaims" }

// Handles implements admission.Interface.
func (Plugin) Handles(op admission.Operation) bool { return op == admission.Update }

// Validate implements admission.ValidationInterface.
func (p Plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || auth.IsServer(a.GetUserInfo()) {
		return nil
	}
	var errs field.ErrorList
	var err error
	switch now := a.GetObject().(type) {
	case *corev1.Service:
		errs, err = p.service(now, a.GetOldObject().(*corev1.Service))
	case *networkingv1.Ingress:
		errs, err = p.ingress(now, a.GetOldObject().(*networkingv1.Ingress))
	}
	if err != nil || len(errs) == 0 {
		return err
	}
	return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), errs)
}

func (p Plugin) service(now, old *corev1.Service) (field.ErrorList, error) {
	fresh := newOf(p.claimsOfService(now), p.claimsOfService(old))
	if len(fresh) == 0 {
		return nil, nil
	}
	all, err := p.Services.List(labels.Everything())
	return refusals("Service", now, fresh, all, p.claimsOfService), err
}

func (p Plugin) ingress(now, old *networkingv1.Ingress) (field.ErrorList, error) {
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
	return refusals("Ingress", now, fresh, all, claims), err
}

// refusals says of each claim which object of another namespace would lose it.
func refusals[T metav1.Object](kind string, now T, fresh []claim, all []T, claims func(T) []claim) (errs field.ErrorList) {
	for _, other := range all {
		if other.GetNamespace() == now.GetNamespace() || other.GetDeletionTimestamp() != nil || !older(now, other) {
			continue
		}
		has := map[string]bool{}
		for _, c := range claims(other) {
			has[c.of] = true
		}
		for _, c := range fresh {
			if has[c.of] {
				errs = append(errs, field.Invalid(c.path, c.value, fmt.Sprintf("%s belongs to %s %s/%s, which would lose it because this one is older: make a new %s",
					c.of, kind, other.GetNamespace(), other.GetName(), kind)))
			}
		}
	}
	return errs
}

// older also holds of objects of one second: those who serve order them by name.
func older(a, b metav1.Object) bool {
	return a.GetCreationTimestamp().Unix() <= b.GetCreationTimestamp().Unix()
}
