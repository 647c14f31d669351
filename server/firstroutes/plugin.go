package firstroutes

import (
	"context"
	"fmt"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	corelisters "k8s.io/client-go/listers/core/v1"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/agent/net/router/gateway"
	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// syncTimeMax is how long a change waits for the caches of a server that has just started.
const syncTimeMax = 10 * time.Second

// lossesMax is how many hosts and ports a refusal names.
const lossesMax = 10

// Plugin judges changes of Gateways, ListenerSets and routes, and of Ingresses where there are Gateways.
type Plugin struct {
	// Objects are those of the Gateway API that this replica has.
	Objects    func(context.Context) (gatewayapi.Objects, error)
	Services   corelisters.ServiceLister
	Ingresses  networkinglisters.IngressLister
	Classes    networkinglisters.IngressClassLister
	Namespaces corelisters.NamespaceLister
	Nodes      corelisters.NodeLister
	// Reserved knows which ports and addresses are machines'.
	Reserved *reserved.Book
	// Synced tell whether all these have what was stored when the server started.
	Synced []cache.InformerSynced
}

// Name is what its time is measured under.
func (Plugin) Name() string { return "FirstRoutes" }

// Handles implements admission.Interface.
func (Plugin) Handles(op admission.Operation) bool { return op == admission.Update }

// Validate implements admission.ValidationInterface.
func (p Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || auth.IsServer(a.GetUserInfo()) {
		return nil
	}
	kind := a.GetKind().Kind
	now, old := claiming(kind, a.GetObject()), claiming(kind, a.GetOldObject())
	if now == nil || old == nil || apiequality.Semantic.DeepEqual(claims(now), claims(old)) {
		return nil
	}
	objects, err := p.Objects(ctx)
	if err != nil {
		return err
	}
	if len(gatewayapi.Ours(&objects)) == 0 && isIngress(now) {
		return nil // without a Gateway only Ingresses have hosts
	}
	if err := p.sync(ctx); err != nil {
		return err
	}
	w, err := p.now(objects)
	if err != nil {
		return err
	}
	losses := gateway.Losses(p.result(w.with(old)), p.result(w.with(now)), now.GetNamespace())
	if len(losses) == 0 {
		return nil
	}
	return apierrors.NewInvalid(a.GetKind().GroupKind(), a.GetName(), refusals(losses, kind, now))
}

// refusals say what would be lost, in the words of apiserver/admission/firstclaims.
func refusals(losses []gateway.Loss, kind string, now metav1.Object) (errs field.ErrorList) {
	for _, l := range losses[:min(len(losses), lossesMax)] {
		because := "this one is older"
		if l.By != nil && (l.By.GetNamespace() != now.GetNamespace() || l.By.GetName() != now.GetName()) {
			because = fmt.Sprintf("%s/%s is older", l.By.GetNamespace(), l.By.GetName())
		}
		sentence := fmt.Sprintf("%s belongs to %s, which would lose it because %s: make a new %s", l.Thing, l.Holder, because, kind)
		errs = append(errs, field.Forbidden(field.NewPath("spec"), sentence))
	}
	return errs
}

// claiming is an object of a kind that claims hosts or ports, nil for all others. One that cannot be read claims nothing.
func claiming(kind string, o runtime.Object) metav1.Object {
	switch o := o.(type) {
	case *networkingv1.Ingress:
		return o
	case *unstructured.Unstructured:
		if o.GroupVersionKind().Group != gatewayapi.GroupVersion.Group {
			return nil
		}
		return gatewayapi.Claiming(kind, o)
	}
	return nil
}

func isIngress(o metav1.Object) bool {
	_, is := o.(*networkingv1.Ingress)
	return is
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
	return apierrors.NewServiceUnavailable("this server has just started and does not know yet what other Gateways and Ingresses have: try again")
}
