package discovery_test

import (
	"net/http/httptest"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// testKinds are a few kinds with every sort of subresource; documents do not depend on
// how apiserver/kinds grows.
func testKinds() []*resource.Any {
	podKind := corev1.SchemeGroupVersion.WithKind
	return []*resource.Any{
		resource.Erase(resource.Kind[*corev1.Namespace]{
			GroupVersionKind: podKind("Namespace"), Plural: "namespaces", ShortNames: []string{"ns"}, ClusterScoped: true,
			New:     func() *corev1.Namespace { return &corev1.Namespace{} },
			NewList: func() runtime.Object { return &corev1.NamespaceList{} },
			Status:  func(n *corev1.Namespace) any { return &n.Status },
		}),
		resource.Erase(resource.Kind[*corev1.Pod]{
			GroupVersionKind: podKind("Pod"), Plural: "pods", ShortNames: []string{"po"}, Categories: []string{"all"},
			New:     func() *corev1.Pod { return &corev1.Pod{} },
			NewList: func() runtime.Object { return &corev1.PodList{} },
			Status:  func(p *corev1.Pod) any { return &p.Status },
			Subresources: []resource.Subresource{
				{Name: "log", Kind: podKind("Pod"), Verbs: []string{"get"}},
				{Name: "exec", Kind: podKind("PodExecOptions"), Verbs: []string{"create", "get"}},
				{Name: "proxy", Kind: podKind("PodProxyOptions"), Verbs: []string{"create", "delete", "get", "patch", "update"}},
				{Name: "binding", Kind: podKind("Binding"), Verbs: []string{"create"}},
				{Name: "eviction", Kind: policyv1.SchemeGroupVersion.WithKind("Eviction"), Verbs: []string{"create"}},
			},
		}),
		resource.Erase(resource.Kind[*appsv1.Deployment]{
			GroupVersionKind: appsv1.SchemeGroupVersion.WithKind("Deployment"), Plural: "deployments",
			ShortNames: []string{"deploy"}, Categories: []string{"all"},
			New:     func() *appsv1.Deployment { return &appsv1.Deployment{} },
			NewList: func() runtime.Object { return &appsv1.DeploymentList{} },
			Status:  func(d *appsv1.Deployment) any { return &d.Status },
			Scale:   &resource.Scale[*appsv1.Deployment]{},
		}),
		resource.Erase(resource.Kind[*coordinationv1.Lease]{
			GroupVersionKind: coordinationv1.SchemeGroupVersion.WithKind("Lease"), Plural: "leases",
			New:     func() *coordinationv1.Lease { return &coordinationv1.Lease{} },
			NewList: func() runtime.Object { return &coordinationv1.LeaseList{} },
		}),
	}
}

func newHandler(t *testing.T, config discovery.Config) *discovery.Handler {
	t.Helper()
	config.Kinds, config.Address, config.Version = testKinds(), "192.0.2.1:6443", "0.1.0"
	handler, err := discovery.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func newServer(t *testing.T, handler *discovery.Handler) *rest.Config {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}
