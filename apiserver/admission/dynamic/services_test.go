package dynamic

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

func put(t *testing.T, store *storage.Store, gvr schema.GroupVersionResource, obj resource.Object) {
	t.Helper()
	_, err := store.Table(gvr).Write(t.Context(), "ns", obj.GetName(), func(*storage.View) (*storage.Change, error) {
		return &storage.Change{Object: obj}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func service(name string, spec corev1.ServiceSpec) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Spec: spec}
}

func slice(of, name string, port int32, portName string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{discoveryv1.LabelServiceName: of}},
		Ports:      []discoveryv1.EndpointPort{{Name: &portName, Port: &port}}, Endpoints: endpoints,
	}
}

func endpoint(address string, ready bool) discoveryv1.Endpoint {
	return discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}
}

func TestServicesLeadToReadyPods(t *testing.T) {
	store := storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())
	services, slices := corev1.SchemeGroupVersion.WithResource("services"), discoveryv1.SchemeGroupVersion.WithResource("endpointslices")
	ports := []corev1.ServicePort{{Name: "https", Port: 443}, {Name: "other", Port: 8443}}
	put(t, store, services, service("web", corev1.ServiceSpec{Ports: ports}))
	put(t, store, services, service("idle", corev1.ServiceSpec{Ports: ports}))
	put(t, store, services, service("away", corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "hooks.example.com"}))
	put(t, store, slices, slice("web", "web-1", 9443, "https", endpoint("10.0.0.1", false), endpoint("10.0.0.2", true)))
	put(t, store, slices, slice("web", "web-2", 9444, "other", endpoint("10.0.0.3", true)))
	put(t, store, slices, slice("idle", "idle-1", 9443, "https", endpoint("10.0.0.4", false)))
	resolver := NewServiceResolver(store)
	for name, c := range map[string]struct {
		service   string
		port      int32
		want, err string
	}{
		"the ready one":  {"web", 443, "https://10.0.0.2:9443", ""},
		"its other port": {"web", 8443, "https://10.0.0.3:9444", ""},
		"a name outside": {"away", 443, "https://hooks.example.com:443", ""},
		"no such port":   {"web", 80, "", `no service port 80 found for service "web"`},
		"nobody ready":   {"idle", 443, "", `no endpoints available for service "idle"`},
		"no such":        {"none", 443, "", `services "none" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := resolver.ResolveEndpoint("ns", c.service, c.port)
			switch {
			case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
				t.Errorf("%v, want %q", err, c.err)
			case c.err == "" && (err != nil || got.String() != c.want):
				t.Errorf("%v, %v; want %s", got, err, c.want)
			}
		})
	}
}

// BenchmarkNothingConfigured is what a write pays while there is no webhook and no policy.
func BenchmarkNothingConfigured(b *testing.B) {
	store := storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())
	a := admission.NewAttributesRecord(&corev1.ConfigMap{}, nil, corev1.SchemeGroupVersion.WithKind("ConfigMap"), "ns", "c",
		corev1.SchemeGroupVersion.WithResource("configmaps"), "", admission.Create, nil, false, nil)
	plugins, err := New(Config{Store: store})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, p := range plugins {
			var err error
			switch l := p.(type) {
			case admission.MutationInterface:
				err = l.Admit(b.Context(), a, nil)
			case admission.ValidationInterface:
				err = l.Validate(b.Context(), a, nil)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
