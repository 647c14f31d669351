package auth_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	rest "github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// TestNodesReadCertificates: of the Ingresses that they serve, for as long as one names them, and of no others.
func TestNodesReadCertificates(t *testing.T) {
	w, store := running(t)
	rules := auth.NewAuthorizer(auth.Config{Workloads: w})
	store1 := func(plural, namespace, name string, change *storage.Change) {
		t.Helper()
		gvr := networkingv1.SchemeGroupVersion.WithResource(plural)
		if plural == "nodes" {
			gvr = corev1.SchemeGroupVersion.WithResource(plural)
		}
		table := store.Table(gvr)
		if _, err := table.Write(t.Context(), namespace, name, func(*storage.View) (*storage.Change, error) { return change, nil }); err != nil {
			t.Fatal(err)
		}
		if err := w.CatchUp(t.Context(), store.Revision()); err != nil {
			t.Fatal(err)
		}
	}
	put := func(plural string, o rest.Object) {
		store1(plural, o.GetNamespace(), o.GetName(), &storage.Change{Object: o})
	}
	class := func(name, controller string) *networkingv1.IngressClass {
		return &networkingv1.IngressClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: networkingv1.IngressClassSpec{Controller: controller}}
	}
	ingress := func(name, class, secret string) *networkingv1.Ingress {
		return &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: name}, Spec: networkingv1.IngressSpec{
			IngressClassName: &class, TLS: []networkingv1.IngressTLS{{SecretName: secret}},
		}}
	}
	expect := func(step, secret string, allowed bool) {
		t.Helper()
		for _, verb := range []string{"get", "list", "watch"} {
			decision, _, err := rules.Authorize(t.Context(), resource(nodeA, verb, "", "secrets", "", "x", secret))
			if err != nil || (decision == authorizer.DecisionAllow) != allowed {
				t.Errorf("%s: %s %s: %v, %v", step, verb, secret, decision, err)
			}
		}
	}
	node := func(name string, labels map[string]string) {
		put("nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	node("a", map[string]string{reserved.IngressLabel: "80-443"})
	put("ingresses", ingress("one", "ours", "s"))
	expect("no class", "s", false)
	put("ingressclasses", class("ours", auth.IngressController))
	put("ingressclasses", class("theirs", "k8s.io/ingress-nginx"))
	expect("our class", "s", true)
	expect("nobody names it", "other", false)
	expect("all of them", "", false)
	put("ingresses", ingress("two", "theirs", "t"))
	expect("the class of others", "t", false)
	put("ingresses", ingress("two", "ours", "s"))
	store1("ingresses", "x", "one", &storage.Change{Delete: true})
	expect("another names it", "s", true)
	put("ingresses", ingress("two", "ours", "new"))
	expect("it is named no more", "s", false)
	expect("the new one", "new", true)
	expect("nobody's", "g", false)
	w.OfGateways(func(resource, namespace, name string) bool {
		return resource == "secrets" && namespace == "x" && name == "g"
	})
	expect("a Gateway's", "g", true)
	w.OfGateways(func(resource, namespace, name string) bool {
		return resource == "configmaps" && namespace == "x" && name == "s"
	})
	expect("a ConfigMap of that name", "s", false)
	for name, allowed := range map[string]bool{"s": true, "other": false} {
		decision, _, err := rules.Authorize(t.Context(), resource(nodeA, "watch", "", "configmaps", "", "x", name))
		if err != nil || (decision == authorizer.DecisionAllow) != allowed {
			t.Errorf("ConfigMap %s: %v, %v", name, decision, err)
		}
	}
	node("a", nil)
	expect("the node has no ports for Ingresses", "new", false)
	node("a", map[string]string{reserved.IngressLabel: "80-443"})
	expect("it has", "new", true)
	node("b", map[string]string{reserved.EdgeLabel: "true"})
	expect("another node is to serve", "new", false)
	for _, name := range []string{"s", "other"} {
		decision, _, err := rules.Authorize(t.Context(), resource(nodeA, "watch", "", "configmaps", "", "x", name))
		if err != nil || decision == authorizer.DecisionAllow {
			t.Errorf("ConfigMap %s, and another node is to serve: %v, %v", name, decision, err)
		}
	}
	node("a", map[string]string{reserved.IngressLabel: "80-443", reserved.EdgeLabel: "true"})
	expect("both are", "new", true)
	node("a", map[string]string{reserved.IngressLabel: "80-443", reserved.EdgeLabel: "false"})
	expect("it is kept from it", "new", false)
	node("a", map[string]string{reserved.IngressLabel: "80-443", reserved.EdgeLabel: "true"})
	store1("nodes", "", "a", &storage.Change{Delete: true})
	expect("its Node is gone", "new", false)
}
