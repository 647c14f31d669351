package gateway

import (
	"context"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/gateway"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
)

// gatewayLabel names the Gateway for which an object was made, as the API wants it.
const gatewayLabel = "gateway.networking.k8s.io/gateway-name"

// isOurs tells whether an object was made for a Gateway.
func isOurs(o metav1.Object) bool { return o.GetLabels()[gatewayLabel] != "" }

// address is where a Gateway is served: at the nodes' addresses, or at one of its own, which a Service of the type LoadBalancer gets for
// it. The Service leads to the nodes that serve, at its own node ports, where they serve this Gateway alone.
func (c *controller) address(ctx context.Context, state *gateway.GatewayState, nodes []string) ([]string, error) {
	g := state.Gateway
	service := c.service(g.Namespace, gateway.ServiceName(g))
	accepted := meta.IsStatusConditionTrue(state.Conditions, string(v1.GatewayConditionAccepted))
	switch {
	case service != nil && !gateway.Owns(g, service):
		return nodes, nil // somebody else has the name; the Gateway is served with all others
	case service != nil && (!c.ownAddresses || !accepted):
		err := c.env.Client.CoreV1().Services(g.Namespace).Delete(reconcile.WithCause(ctx, g), service.Name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			err = nil
		}
		return nil, err
	case !c.ownAddresses || !accepted:
		return nodes, nil
	case len(nodes) == 0 && service == nil:
		return nil, nil
	case len(nodes) == 0:
		return nil, c.ensureSlice(ctx, g, service, nil) // those that it led to have closed their ports
	}
	service, err := c.ensureService(ctx, g, state.Ports, service)
	if service == nil {
		return nil, err
	}
	var own []string
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		own = append(own, ingress.IP)
	}
	return own, errors.Join(err, c.ensureSlice(ctx, g, service, nodes))
}

// addressMissing is the condition of a Service of the type LoadBalancer that says why it has no address.
const addressMissing = "setpoint.io/AddressMissing"

// lacks says why a Gateway has no address of its own: what its Service is told, or why there is none; "": that is not known yet.
func (c *controller) lacks(g *v1.Gateway, failed error) string {
	if failed != nil {
		return failed.Error()
	}
	service := c.service(g.Namespace, gateway.ServiceName(g))
	if service == nil {
		return ""
	}
	missing := meta.FindStatusCondition(service.Status.Conditions, addressMissing)
	if missing == nil || missing.Status != metav1.ConditionTrue {
		return ""
	}
	return fmt.Sprintf("Service %s has none: %s: %s", service.Name, missing.Reason, missing.Message)
}

// ensureService makes the Service, or gives it the ports of the listeners; it returns nil if it was made and is to be seen first. One whose
// ports change, or may not, keeps its address meanwhile: a Gateway without one would be told to have failed.
func (c *controller) ensureService(ctx context.Context, g *v1.Gateway, numbers []int32, have *corev1.Service) (*corev1.Service, error) {
	client := c.env.Client.CoreV1().Services(g.Namespace)
	if have == nil {
		made := &corev1.Service{
			ObjectMeta: ownedBy(g), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: ports(numbers, nil)},
		}
		_, err := client.Create(reconcile.WithCause(ctx, g), made, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, fmt.Errorf("address of Gateway %s/%s: %w", g.Namespace, g.Name, err)
		}
		return nil, nil
	}
	wanted := ports(numbers, have.Spec.Ports)
	if apiequality.Semantic.DeepEqual(have.Spec.Ports, wanted) {
		return have, nil
	}
	changed := have.DeepCopy()
	changed.Spec.Ports = wanted
	written, err := client.Update(reconcile.WithCause(ctx, g), changed, metav1.UpdateOptions{})
	switch {
	case apierrors.IsConflict(err):
		return have, nil // a newer one is on its way here
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return have, fmt.Errorf("ports of Gateway %s/%s: %w", g.Namespace, g.Name, err)
	}
	return written, nil
}

// ports are those of the listeners; those that are there stay as they are.
func ports(numbers []int32, have []corev1.ServicePort) []corev1.ServicePort {
	var wanted []corev1.ServicePort
	for _, number := range numbers {
		port := corev1.ServicePort{Name: fmt.Sprintf("p-%d", number), Port: number, Protocol: corev1.ProtocolTCP}
		for _, p := range have {
			if p.Port == number {
				port = p
			}
		}
		wanted = append(wanted, port)
	}
	return wanted
}

// ensureSlice leads the Service to the nodes.
func (c *controller) ensureSlice(ctx context.Context, g *v1.Gateway, service *corev1.Service, nodes []string) error {
	wanted := &discoveryv1.EndpointSlice{ObjectMeta: ownedBy(g), AddressType: discoveryv1.AddressTypeIPv4}
	wanted.Labels[discoveryv1.LabelServiceName] = service.Name
	wanted.Labels[discoveryv1.LabelManagedBy] = controllerName
	for _, p := range service.Spec.Ports {
		wanted.Ports = append(wanted.Ports, discoveryv1.EndpointPort{Name: &p.Name, Port: &p.NodePort, Protocol: &p.Protocol})
	}
	for _, at := range nodes {
		ready := true
		wanted.Endpoints = append(wanted.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{at}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
	}
	client := c.env.Client.DiscoveryV1().EndpointSlices(g.Namespace)
	have, err := c.slices.Get(reconcile.Key{Namespace: g.Namespace, Name: wanted.Name})
	switch {
	case apierrors.IsNotFound(err):
		_, err = client.Create(reconcile.WithCause(ctx, g), wanted, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
	case err != nil || same(have, wanted):
	default:
		changed := have.DeepCopy()
		changed.Ports, changed.Endpoints = wanted.Ports, wanted.Endpoints
		changed.Labels, changed.OwnerReferences = wanted.Labels, wanted.OwnerReferences
		_, err = client.Update(reconcile.WithCause(ctx, g), changed, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil
		}
	}
	return err
}

func same(a, b *discoveryv1.EndpointSlice) bool {
	return apiequality.Semantic.DeepEqual(a.Ports, b.Ports) && apiequality.Semantic.DeepEqual(a.Endpoints, b.Endpoints) &&
		apiequality.Semantic.DeepEqual(a.Labels, b.Labels)
}

func ownedBy(g *v1.Gateway) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: g.Namespace, Name: gateway.ServiceName(g), Labels: map[string]string{gatewayLabel: label(g.Name)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(g, gatewayapi.GroupVersion.WithKind("Gateway"))},
	}
}

// label is a name as far as a label can hold it; its last character must be a letter or a digit.
func label(name string) string {
	return strings.TrimRight(name[:min(len(name), validation.LabelValueMaxLength)], "-.")
}
