package ingress

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

func node(name, internal, external, serves string, ready corev1.ConditionStatus) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"setpoint.io/ingress": serves}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: internal}}
	if external != "" {
		n.Status.Addresses = append(n.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: external})
	}
	return n
}

func anIngress(name, class, service string) *networkingv1.Ingress {
	kind := networkingv1.PathTypePrefix
	return &networkingv1.Ingress{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name},
		Spec: networkingv1.IngressSpec{IngressClassName: &class, Rules: []networkingv1.IngressRule{{IngressRuleValue: networkingv1.IngressRuleValue{
			HTTP: &networkingv1.HTTPIngressRuleValue{Paths: []networkingv1.HTTPIngressPath{{Path: "/" + name, PathType: &kind, Backend: networkingv1.IngressBackend{
				Service: &networkingv1.IngressServiceBackend{Name: service, Port: networkingv1.ServiceBackendPort{Number: 80}},
			}}}},
		}}}},
	}
}

func TestStatusAndEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		reconciletest.Add(w, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
		})
		reconciletest.Add(w, anIngress("good", ClassName, "web"))
		reconciletest.Add(w, anIngress("bad", ClassName, "missing"))
		reconciletest.Add(w, anIngress("foreign", "nginx", "missing"))
		w.Run(New())
		w.Settle()
		if n := len(w.Writes()); n != 0 {
			t.Errorf("%d writes while no node serves Ingresses", n)
		}
		reconciletest.Add(w, node("b", "10.0.0.2", "192.0.2.2", "80-443", corev1.ConditionTrue))
		reconciletest.Add(w, node("a", "10.0.0.1", "", "80-443", corev1.ConditionTrue))
		reconciletest.Add(w, node("silent", "10.0.0.3", "", "80-443", corev1.ConditionUnknown))
		reconciletest.Add(w, node("other", "10.0.0.4", "", "", corev1.ConditionTrue))
		taken := node("taken", "10.0.0.5", "", "80-443", corev1.ConditionTrue) // another program answers there
		taken.Status.Conditions = append(taken.Status.Conditions, corev1.NodeCondition{Type: "IngressProblem", Status: corev1.ConditionTrue})
		reconciletest.Add(w, taken)
		w.Settle()
		class, err := w.Client.NetworkingV1().IngressClasses().Get(t.Context(), ClassName, metav1.GetOptions{})
		if err != nil || class.Spec.Controller != "setpoint.io/ingress" || class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] != "true" {
			t.Fatalf("%v %+v", err, class)
		}
		for name, want := range map[string]string{"good": "10.0.0.1 192.0.2.2", "bad": "10.0.0.1 192.0.2.2", "foreign": ""} {
			i, err := w.Client.NetworkingV1().Ingresses("n").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var at []string
			for _, a := range i.Status.LoadBalancer.Ingress {
				at = append(at, a.IP)
			}
			if got := strings.Join(at, " "); got != want {
				t.Errorf("%s is served at %q, want %q", name, got, want)
			}
		}
		if events := w.Events.List(); len(events) != 1 || !strings.Contains(events[0], "BackendMissing") || !strings.Contains(events[0], "missing: it does not exist") {
			t.Errorf("events: %q", events)
		}
		// Once a node is labelled, only those labelled so serve.
		chosen := node("b", "10.0.0.2", "192.0.2.2", "80-443", corev1.ConditionTrue)
		reconciletest.Edit(w, chosen, func(n *corev1.Node) { n.Labels[reserved.EdgeLabel] = reserved.Edge })
		w.Settle()
		if i, err := w.Client.NetworkingV1().Ingresses("n").Get(t.Context(), "good", metav1.GetOptions{}); err != nil ||
			len(i.Status.LoadBalancer.Ingress) != 1 || i.Status.LoadBalancer.Ingress[0].IP != "192.0.2.2" {
			t.Errorf("%v, served at %v", err, i.Status.LoadBalancer.Ingress)
		}
		w.Writes()
		w.Settle()
		if n := len(w.Writes()); n != 0 {
			t.Errorf("%d writes although nothing changed", n)
		}
	})
}

// TestAnotherDefaultClass: there are never two defaults.
func TestAnotherDefaultClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		reconciletest.Add(w, &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: "nginx", Annotations: map[string]string{
			networkingv1.AnnotationIsDefaultIngressClass: "true",
		}}})
		reconciletest.Add(w, node("a", "10.0.0.1", "", "80-443", corev1.ConditionTrue))
		w.Run(New())
		w.Settle()
		class, err := w.Client.NetworkingV1().IngressClasses().Get(t.Context(), ClassName, metav1.GetOptions{})
		if err != nil || class.Annotations[networkingv1.AnnotationIsDefaultIngressClass] != "" {
			t.Errorf("%v %+v", err, class)
		}
	})
}

// TestTooManySecrets: a namespace that names more Secrets than nodes read is told, in few words, and takes nothing from another.
func TestTooManySecrets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		greedy, small := anIngress("greedy", ClassName, "web"), anIngress("small", ClassName, "web")
		greedy.UID, small.UID, small.Namespace = "greedy", "small", "other"
		for n := range 1100 {
			greedy.Spec.TLS = append(greedy.Spec.TLS, networkingv1.IngressTLS{SecretName: fmt.Sprint("missing-", n), Hosts: []string{fmt.Sprint(n, ".com")}})
		}
		small.Spec.TLS = []networkingv1.IngressTLS{{SecretName: "missing", Hosts: []string{"small.com"}}}
		small.CreationTimestamp = metav1.Now() // and after the other
		reconciletest.Add(w, greedy)
		reconciletest.Add(w, small)
		reconciletest.Add(w, node("a", "10.0.0.1", "", "80-443", corev1.ConditionTrue))
		w.Run(New())
		w.Settle()
		events := w.Events.List()
		has := func(text string) bool {
			return slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, text) })
		}
		if !has("Secret missing: secrets") || !has("TooManySecrets 101 of its Secrets are not read") || !has("ManyProblems") || len(events) > 30 {
			t.Errorf("%d events: %q", len(events), events)
		}
	})
}
