package admission

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/simulatednode"
)

// warnings keeps what is said.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// TestWhoServes: who makes what nobody serves is told what is missing, and nobody else is.
func TestWhoServes(t *testing.T) {
	node := func(label, value string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{label: value}}}
	}
	class := func(name, controller string) resource.Object {
		return &networkingv1.IngressClass{ObjectMeta: named(name), Spec: networkingv1.IngressClassSpec{Controller: controller}}
	}
	ingress := func(class string) resource.Object {
		return &networkingv1.Ingress{ObjectMeta: inNS("i"), Spec: networkingv1.IngressSpec{IngressClassName: &class}}
	}
	balancer := &corev1.Service{ObjectMeta: inNS("s"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	serving, simulated := node(reserved.IngressLabel, "80-443"), node(simulatednode.Label, "")
	labelled := func(name string) *corev1.Node { // it has no ports
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{reserved.EdgeLabel: reserved.Edge}}}
	}
	for name, c := range map[string]struct {
		given  []resource.Object
		object resource.Object
		text   string
	}{
		"no class":         {nil, &networkingv1.Ingress{ObjectMeta: inNS("i")}, "names no class"},
		"a missing class":  {nil, ingress("nginx"), `IngressClass "nginx" does not exist`},
		"an older name":    {nil, &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Name: "i", Namespace: "ns", Annotations: map[string]string{ingressClassAnnotation: "x"}}}, ""},
		"of another":       {[]resource.Object{class("theirs", "example.com/x")}, ingress("theirs"), ""},
		"no node":          {[]resource.Object{class("setpoint", "setpoint.io/ingress"), simulated}, ingress("setpoint"), "no node serves Ingresses"},
		"served":           {[]resource.Object{class("setpoint", "setpoint.io/ingress"), serving}, ingress("setpoint"), ""},
		"simulated nodes":  {[]resource.Object{simulated}, balancer, "every node is simulated"},
		"nobody chosen":    {[]resource.Object{class("setpoint", "setpoint.io/ingress"), serving, labelled("other")}, ingress("setpoint"), "no node serves Ingresses"},
		"a real node":      {[]resource.Object{serving}, balancer, ""},
		"another balancer": {nil, &corev1.Service{ObjectMeta: inNS("s"), Spec: corev1.ServiceSpec{Type: "LoadBalancer", LoadBalancerClass: new("example.com/lb")}}, ""},
		"a plain Service":  {nil, &corev1.Service{ObjectMeta: inNS("s"), Spec: corev1.ServiceSpec{Type: "ClusterIP"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, allowAll, withNamespace(c.given...)...)
			var said warnings
			ctx := warning.WithWarningRecorder(context.Background(), &said)
			if err := newAttended(w.store, false).Validate(ctx, w.attributes(t, request{obj: c.object}), nil); err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(said, "; "); c.text == "" && text != "" || !strings.Contains(text, c.text) {
				t.Errorf("said %q, want %q", text, c.text)
			}
		})
	}
}

// TestAPoolGivesAddresses: with a pool no load balancer stays pending, and on simulated nodes nobody can reach it.
func TestAPoolGivesAddresses(t *testing.T) {
	balancer := &corev1.Service{ObjectMeta: inNS("s"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
	simulated := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{simulatednode.Label: ""}}}
	for want, nodes := range map[string][]resource.Object{
		"every node is simulated: nobody announces the address that this load balancer gets": {simulated},
		"": {simulated, &corev1.Node{ObjectMeta: named("real")}},
	} {
		w := newWorld(t, allowAll, withNamespace(nodes...)...)
		got, err := newAttended(w.store, true).missing(t.Context(), w.attributes(t, request{obj: balancer}))
		if err != nil || got != want {
			t.Errorf("said %q, %v, want %q", got, err, want)
		}
	}
}

// TestWhoServesGateways: a Gateway is a custom resource.
func TestWhoServesGateways(t *testing.T) {
	gateway := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": map[string]any{"name": "g", "namespace": "ns"},
		"spec": map[string]any{"gatewayClassName": ourClass},
	}}
	p := newAttended(newWorld(t, allowAll, withNamespace()...).store, false)
	gvk := gateway.GroupVersionKind()
	text, err := p.missing(t.Context(), admission.NewAttributesRecord(
		gateway, nil, gvk, "ns", "g", gvk.GroupVersion().WithResource("gateways"), "", admission.Create, nil, false, nil))
	if err != nil || !strings.Contains(text, "no node serves Gateways") {
		t.Errorf("said %q, %v", text, err)
	}
}

// TestAWarningRefusesNothing: what cannot be read, as the class while no leader is known, keeps nobody from making an Ingress.
func TestAWarningRefusesNothing(t *testing.T) {
	p := newAttended(newWorld(t, allowAll, withNamespace()...).store, false)
	ingress := &networkingv1.Ingress{ObjectMeta: inNS("i"), Spec: networkingv1.IngressSpec{IngressClassName: new("nginx")}}
	gvk := networkingv1.SchemeGroupVersion.WithKind("Ingress")
	a := admission.NewAttributesRecord(ingress, nil, gvk, "ns", "i", gvk.GroupVersion().WithResource("ingresses"), "", admission.Create, nil, false, nil)
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := p.missing(ended, a); err == nil {
		t.Error("the class can be read although nobody waits for it")
	}
	if err := p.Validate(ended, a, nil); err != nil {
		t.Error(err)
	}
}
