package table

import (
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/hosts"
)

// of is an Ingress of a namespace for a host's path, as old as its age says.
func of(namespace string, age int, host, path string) *networkingv1.Ingress {
	kind := networkingv1.PathTypePrefix
	i := &networkingv1.Ingress{}
	i.Namespace, i.Name = namespace, "web"
	i.CreationTimestamp = metav1.Unix(1000-int64(age), 0)
	i.Spec.IngressClassName = ptr("setpoint")
	i.Spec.TLS = []networkingv1.IngressTLS{{SecretName: namespace}}
	i.Spec.Rules = []networkingv1.IngressRule{{Host: host, IngressRuleValue: networkingv1.IngressRuleValue{HTTP: &networkingv1.HTTPIngressRuleValue{
		Paths: []networkingv1.HTTPIngressPath{{Path: path, PathType: &kind, Backend: networkingv1.IngressBackend{
			Service: &networkingv1.IngressServiceBackend{Name: namespace, Port: networkingv1.ServiceBackendPort{Number: 80}},
		}}},
	}}}}
	return i
}

// TestAHostIsOneNamespaces: a longer path and a certificate of another one take nothing, and the host is free when the first has gone.
func TestAHostIsOneNamespaces(t *testing.T) {
	first, second := of("shop", 2, "Shop.com", "/"), of("ten", 1, "shop.com", "/login")
	table, problems := Build(world(second, first))
	found, at := table.Lookup("shop.com", "/login")
	if found.Backend.Service != "shop" || at != "shop.com" || string(table.Certificate("shop.com").Certificate[0]) != "shop" {
		t.Errorf("%v at %s", found, at)
	}
	if len(problems) != 1 || problems[0].Ingress.Namespace != "ten" || problems[0].Reason != hosts.Reason {
		t.Errorf("%v", problems)
	}
	if table, problems = Build(world(second)); table.Find("shop.com", "/login").Backend.Service != "ten" || len(problems) != 0 {
		t.Errorf("the first has gone: %v", problems)
	}
	first.Annotations = map[string]string{hosts.Annotation: "ten"}
	if table, problems = Build(world(second, first)); table.Find("shop.com", "/login").Backend.Service != "ten" || len(problems) != 1 {
		t.Errorf("shared: %v", problems) // the certificate is the first's
	}
	second.Spec.Rules = nil
	second.Spec.TLS[0].Hosts = []string{"shop.com"}
	first.Annotations, first.Spec.TLS = nil, nil
	if table, _ = Build(world(second, first)); table.Certificate("shop.com") != nil {
		t.Error("who names the host in TLS only shows another's clients a certificate")
	}
}

func TestWhatIsNamed(t *testing.T) {
	table, _ := Build(world(of("a", 3, "*.com", "/"), of("b", 2, "b.com", "/"), of("c", 1, "", "/")))
	for name, want := range map[string]hosts.Host{"B.com.": "b.com", "x.com": "*.com", "x.org": "", "": ""} {
		if got := table.Named(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
