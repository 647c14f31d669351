package gateway

import (
	"context"
	"fmt"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/gateway"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
)

// ancestorsMax is how many ancestors the status of a policy has at most, by its schema.
const ancestorsMax = 16

// keepClasses makes the class if nodes serve it and it is not there, and tells of all that are ours.
func (c *controller) keepClasses(ctx context.Context, known []*v1.GatewayClass, served bool) error {
	if served && !slices.ContainsFunc(known, func(class *v1.GatewayClass) bool { return class.Name == gatewayapi.ClassName }) {
		class := &v1.GatewayClass{ObjectMeta: metav1.ObjectMeta{Name: gatewayapi.ClassName}}
		class.Spec.ControllerName = gatewayapi.Controller
		object, err := untyped(class, "GatewayClass")
		if err != nil {
			return err
		}
		_, err = c.client.Resource(gatewayapi.Resource("gatewayclasses")).Create(ctx, object, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create GatewayClass %s: %w", gatewayapi.ClassName, err)
		}
	}
	for _, class := range known {
		if class.Spec.ControllerName != gatewayapi.Controller {
			continue
		}
		changed := class.DeepCopy()
		c.set(&changed.Status.Conditions, class.Generation, classConditions(class))
		changed.Status.SupportedFeatures = featuresOfClass
		if err := c.update(ctx, "gatewayclasses", "GatewayClass", class, changed, class.Status, changed.Status); err != nil {
			return err
		}
	}
	return nil
}

func classConditions(class *v1.GatewayClass) []metav1.Condition {
	accepted := metav1.Condition{
		Type: string(v1.GatewayClassConditionStatusAccepted), Status: metav1.ConditionTrue, Reason: string(v1.GatewayClassReasonAccepted),
	}
	if class.Spec.ParametersRef != nil {
		accepted.Status, accepted.Reason = metav1.ConditionFalse, string(v1.GatewayClassReasonInvalidParameters)
		accepted.Message = "there are no parameters of classes here"
	}
	return []metav1.Condition{accepted}
}

// setGateway writes what is told of a Gateway, if it is something else than before; served is whether a node serves Gateways, lacks why it
// has no address.
func (c *controller) setGateway(ctx context.Context, state *gateway.GatewayState, addresses []string, served bool, lacks string) error {
	g, changed := state.Gateway, state.Gateway.DeepCopy()
	accepted := meta.IsStatusConditionTrue(state.Conditions, string(v1.GatewayConditionAccepted))
	programmed := metav1.Condition{
		Type: string(v1.GatewayConditionProgrammed), Status: metav1.ConditionTrue, Reason: string(v1.GatewayReasonProgrammed),
	}
	changed.Status.Addresses = nil
	switch {
	case !accepted:
		programmed.Status, programmed.Reason, programmed.Message = metav1.ConditionFalse, string(v1.GatewayReasonInvalid), "it is not accepted"
	case len(addresses) == 0 && served:
		programmed.Status, programmed.Reason = metav1.ConditionFalse, string(v1.GatewayReasonAddressNotAssigned)
		programmed.Message = because("it waits for an address of its own", lacks)
	case len(addresses) == 0:
		programmed.Status, programmed.Reason = metav1.ConditionFalse, string(v1.GatewayReasonAddressNotAssigned)
		programmed.Message = "no ready node serves Gateways: those do that have --ingress-http-port or --ingress-https-port"
	case slices.ContainsFunc(state.Listeners, isPending):
		programmed.Status, programmed.Reason = metav1.ConditionFalse, string(v1.GatewayReasonPending)
		programmed.Message = because("a listener waits for a node port", lacks)
	}
	if accepted {
		changed.Status.Addresses = statusAddresses(addresses)
	}
	c.set(&changed.Status.Conditions, g.Generation, append(state.Conditions, programmed))
	changed.Status.AttachedListenerSets = attached(g, state.Sets)
	changed.Status.Listeners = nil
	for _, l := range state.Listeners {
		next := v1.ListenerStatus{Name: l.Name, SupportedKinds: l.SupportedKinds, AttachedRoutes: l.AttachedRoutes}
		for _, before := range g.Status.Listeners {
			if before.Name == l.Name {
				next.Conditions = slices.Clone(before.Conditions)
			}
		}
		c.set(&next.Conditions, g.Generation, l.Conditions)
		changed.Status.Listeners = append(changed.Status.Listeners, next)
	}
	return c.update(ctx, "gateways", "Gateway", g, changed, g.Status, changed.Status)
}

// because adds a reason, if there is one.
func because(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

func isPending(l v1.ListenerStatus) bool {
	c := meta.FindStatusCondition(l.Conditions, string(v1.ListenerConditionProgrammed))
	return c != nil && c.Reason == string(v1.ListenerReasonPending)
}

// attached is not said while there never was a ListenerSet.
func attached(g *v1.Gateway, sets int32) *int32 {
	if sets == 0 && g.Status.AttachedListenerSets == nil && g.Spec.AllowedListeners == nil {
		return nil
	}
	return &sets
}

// setListenerSet writes what is told of a ListenerSet, if it is something else than before.
func (c *controller) setListenerSet(ctx context.Context, state *gateway.SetState, reachable map[types.NamespacedName]bool) error {
	s, changed := state.Set, state.Set.DeepCopy()
	namespace, name := gatewayapi.GatewayOf(s)
	programmed := meta.FindStatusCondition(state.Conditions, string(v1.ListenerSetConditionProgrammed))
	if programmed.Status == metav1.ConditionTrue && !reachable[types.NamespacedName{Namespace: namespace, Name: name}] {
		programmed.Status, programmed.Reason = metav1.ConditionFalse, string(v1.ListenerSetReasonPending)
		programmed.Message = "the Gateway has no address"
	}
	c.set(&changed.Status.Conditions, s.Generation, state.Conditions)
	changed.Status.Listeners = nil
	for _, l := range state.Listeners {
		next := v1.ListenerEntryStatus{Name: l.Name, SupportedKinds: l.SupportedKinds, AttachedRoutes: l.AttachedRoutes}
		for _, before := range s.Status.Listeners {
			if before.Name == l.Name {
				next.Conditions = slices.Clone(before.Conditions)
			}
		}
		c.set(&next.Conditions, s.Generation, l.Conditions)
		changed.Status.Listeners = append(changed.Status.Listeners, next)
	}
	return c.update(ctx, "listenersets", "ListenerSet", s, changed, s.Status, changed.Status)
}

func statusAddresses(addresses []string) (all []v1.GatewayStatusAddress) {
	kind := v1.IPAddressType
	for _, a := range addresses {
		all = append(all, v1.GatewayStatusAddress{Type: &kind, Value: a})
	}
	return all
}

// setRoute writes what is told of a route's parents. What others tell stays, and what was told of parents that are gone goes.
func (c *controller) setRoute(ctx context.Context, state *gateway.RouteState) error {
	switch r := state.Route.(type) {
	case *v1.HTTPRoute:
		changed := r.DeepCopy()
		changed.Status.Parents = c.parents(r.Status.Parents, state.Parents, r.Generation)
		return c.update(ctx, "httproutes", HTTPRoute, r, changed, r.Status.Parents, changed.Status.Parents)
	case *v1.GRPCRoute:
		changed := r.DeepCopy()
		changed.Status.Parents = c.parents(r.Status.Parents, state.Parents, r.Generation)
		return c.update(ctx, "grpcroutes", GRPCRoute, r, changed, r.Status.Parents, changed.Status.Parents)
	case *v1.TLSRoute:
		changed := r.DeepCopy()
		changed.Status.Parents = c.parents(r.Status.Parents, state.Parents, r.Generation)
		return c.update(ctx, "tlsroutes", TLSRoute, r, changed, r.Status.Parents, changed.Status.Parents)
	}
	return nil
}

// setPolicy writes what is told of a policy's ancestors, of which there are at most ancestorsMax with those of others.
func (c *controller) setPolicy(ctx context.Context, state *gateway.PolicyState) error {
	p, changed := state.Policy, state.Policy.DeepCopy()
	next := slices.DeleteFunc(slices.Clone(p.Status.Ancestors), func(a v1.PolicyAncestorStatus) bool {
		return a.ControllerName == gatewayapi.Controller
	})
	for _, want := range state.Ancestors[:max(0, min(len(state.Ancestors), ancestorsMax-len(next)))] {
		made := v1.PolicyAncestorStatus{AncestorRef: want.AncestorRef, ControllerName: want.ControllerName}
		for _, a := range p.Status.Ancestors {
			if a.ControllerName == want.ControllerName && apiequality.Semantic.DeepEqual(a.AncestorRef, want.AncestorRef) {
				made.Conditions = slices.Clone(a.Conditions)
			}
		}
		c.set(&made.Conditions, p.Generation, want.Conditions)
		next = append(next, made)
	}
	changed.Status.Ancestors = next
	return c.update(ctx, "backendtlspolicies", "BackendTLSPolicy", p, changed, p.Status.Ancestors, next)
}

// Kinds of routes.
const (
	HTTPRoute = gateway.HTTPRoute
	GRPCRoute = gateway.GRPCRoute
	TLSRoute  = gateway.TLSRoute
)

func (c *controller) parents(before, wanted []v1.RouteParentStatus, generation int64) []v1.RouteParentStatus {
	next := slices.DeleteFunc(slices.Clone(before), func(p v1.RouteParentStatus) bool { return p.ControllerName == gatewayapi.Controller })
	for _, want := range wanted {
		made := v1.RouteParentStatus{ParentRef: want.ParentRef, ControllerName: want.ControllerName}
		for _, p := range before {
			if p.ControllerName == want.ControllerName && apiequality.Semantic.DeepEqual(p.ParentRef, want.ParentRef) {
				made.Conditions = slices.Clone(p.Conditions)
			}
		}
		c.set(&made.Conditions, generation, want.Conditions)
		next = append(next, made)
	}
	return next
}

// set changes conditions to what they are to be; others stay, and so does the time of one whose status does.
func (c *controller) set(conditions *[]metav1.Condition, generation int64, wanted []metav1.Condition) {
	*conditions = slices.Clone(*conditions)
	for _, want := range wanted {
		want.ObservedGeneration, want.LastTransitionTime = generation, metav1.NewTime(c.env.Now())
		meta.SetStatusCondition(conditions, want)
	}
}

// update writes the status of an object, unless it is as it was.
func (c *controller) update(ctx context.Context, plural, kind string, was metav1.Object, changed runtime.Object, before, after any) error {
	if apiequality.Semantic.DeepEqual(before, after) || c.written[was.GetUID()] == was.GetResourceVersion() && was.GetResourceVersion() != "" {
		return nil
	}
	object, err := untyped(changed, kind)
	if err != nil {
		return err
	}
	client := c.client.Resource(gatewayapi.Resource(plural)).Namespace(was.GetNamespace())
	_, err = client.UpdateStatus(reconcile.WithCause(ctx, was), object, metav1.UpdateOptions{})
	if err == nil || apierrors.IsConflict(err) {
		c.written[was.GetUID()] = was.GetResourceVersion() // a newer one is on its way here
	} else if !apierrors.IsNotFound(err) {
		return fmt.Errorf("status of %s %s/%s: %w", kind, was.GetNamespace(), was.GetName(), err)
	}
	return nil
}

func untyped(o runtime.Object, kind string) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	made := &unstructured.Unstructured{Object: fields}
	made.SetGroupVersionKind(gatewayapi.GroupVersion.WithKind(kind))
	return made, nil
}
