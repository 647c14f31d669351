package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/simulatednode"
)

const (
	// ourControllers is how the names of this program's controllers begin, in classes.
	ourControllers = "setpoint.io/"
	// ourClass is the GatewayClass of this program's nodes.
	ourClass = "setpoint"
)

var gatewayKind = schema.GroupKind{Group: "gateway.networking.k8s.io", Kind: "Gateway"}

// attended warns who makes an Ingress, a Gateway or a load balancer that nobody serves now: the API accepts it, as it must, since who
// serves it may come later. What cannot be read warns nobody, and refuses nothing.
type attended struct {
	onCreate
	nodes   objects[*corev1.Node]
	classes objects[*networkingv1.IngressClass]
	// pool: load balancers get addresses that nodes announce.
	pool bool
}

func newAttended(store *storage.Store, pool bool) attended {
	return attended{
		pool:    pool,
		nodes:   objectsOf[*corev1.Node](store, corev1.SchemeGroupVersion.WithResource("nodes")),
		classes: objectsOf[*networkingv1.IngressClass](store, networkingv1.SchemeGroupVersion.WithResource("ingressclasses")),
	}
}

// Validate implements admission.ValidationInterface.
func (p attended) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	if text, err := p.missing(ctx, a); err == nil && text != "" {
		warning.AddWarning(ctx, "", text)
	}
	return nil
}

// missing says what would have to be there; "" if the object is served, or is of no kind that is judged.
func (p attended) missing(ctx context.Context, a admission.Attributes) (string, error) {
	switch o := a.GetObject().(type) {
	case *networkingv1.Ingress:
		return p.ofIngress(ctx, o)
	case *corev1.Service:
		class := o.Spec.LoadBalancerClass
		if o.Spec.Type != corev1.ServiceTypeLoadBalancer || class != nil && !strings.HasPrefix(*class, ourControllers) {
			return "", nil
		}
		if p.pool {
			return p.unless(ctx, someIsReal, "every node is simulated: nobody announces the address that this load balancer gets")
		}
		return p.unless(ctx, someIsReal, "every node is simulated: unless another controller gives an address, this load balancer stays pending")
	case *unstructured.Unstructured:
		if a.GetKind().GroupKind() != gatewayKind {
			return "", nil
		}
		if class, _, _ := unstructured.NestedString(o.Object, "spec", "gatewayClassName"); class != ourClass {
			return "", nil
		}
		return p.unless(ctx, someServes, "no node serves Gateways: "+whoServes)
	}
	return "", nil
}

func (p attended) ofIngress(ctx context.Context, o *networkingv1.Ingress) (string, error) {
	_, former := o.Annotations[ingressClassAnnotation]
	switch {
	case former: // whom it names need not have a class
		return "", nil
	case o.Spec.IngressClassName == nil:
		return "this Ingress names no class and none is the default: nobody serves it", nil
	}
	class, known, err := p.classes.get(ctx, "", *o.Spec.IngressClassName)
	switch {
	case err != nil:
		return "", err
	case !known:
		return fmt.Sprintf("IngressClass %q does not exist: nobody serves this Ingress", *o.Spec.IngressClassName), nil
	case !strings.HasPrefix(class.Spec.Controller, ourControllers):
		return "", nil
	}
	return p.unless(ctx, someServes, "no node serves Ingresses: "+whoServes)
}

// unless is the text if the nodes are not as wanted.
func (p attended) unless(ctx context.Context, wanted func([]*corev1.Node) bool, text string) (string, error) {
	nodes, err := p.nodes.in(ctx, "")
	if err != nil || wanted(nodes) {
		return "", err
	}
	return text, nil
}

// whoServes says what is missing where nobody does.
const whoServes = "those with an agent that has --ingress-http-port do, or of these those with the label " + reserved.EdgeLabel + "=" + reserved.Edge +
	" once a node has it"

func someServes(nodes []*corev1.Node) bool {
	return slices.ContainsFunc(nodes, reserved.EdgesOf(nodes).Serves)
}

func someIsReal(nodes []*corev1.Node) bool { return slices.ContainsFunc(nodes, isReal) }

func isReal(n *corev1.Node) bool { return !simulatednode.Is(n) }
