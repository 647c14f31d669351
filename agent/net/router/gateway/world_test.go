package gateway

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// world reads objects from YAML, each younger than the one before; all Services but "missing" are there, and none has endpoints.
func world(t *testing.T, text string) Input {
	t.Helper()
	in := Input{
		Namespace: func(name string) map[string]string { return map[string]string{"is": name} },
		Slices:    func(string, string) []*discoveryv1.EndpointSlice { return nil },
		Service: func(namespace, name string) *corev1.Service {
			if name == "missing" {
				return nil
			}
			return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}, {Name: "named", Port: 90}}}}
		},
		Certificate: func(_, secret string) (*tls.Certificate, error) {
			if secret == "broken" {
				return nil, errors.New("it has no tls.crt")
			}
			return &tls.Certificate{Certificate: [][]byte{[]byte(secret)}}, nil
		},
		Authorities: func(_, configMap string) (*table.Authorities, error) {
			if configMap == "broken" {
				return nil, errors.New("its ca.crt has no certificate")
			}
			return &table.Authorities{PEM: configMap}, nil
		},
		Reserved: reserved.New(), Shared: map[int]bool{8443: true},
	}
	in.Classes = []*v1.GatewayClass{{ObjectMeta: metav1.ObjectMeta{Name: "ours"}, Spec: v1.GatewayClassSpec{ControllerName: gatewayapi.Controller}}}
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, one := range strings.Split(text, "---\n") {
		var kind metav1.TypeMeta
		read(t, one, &kind)
		made = made.Add(time.Second)
		var o metav1.Object
		switch kind.Kind {
		case "Gateway":
			g := &v1.Gateway{}
			in.Gateways, o = append(in.Gateways, g), g
		case "HTTPRoute":
			r := &v1.HTTPRoute{}
			in.HTTPRoutes, o = append(in.HTTPRoutes, r), r
		case "GRPCRoute":
			r := &v1.GRPCRoute{}
			in.GRPCRoutes, o = append(in.GRPCRoutes, r), r
		case "TLSRoute":
			r := &v1.TLSRoute{}
			in.TLSRoutes, o = append(in.TLSRoutes, r), r
		case "ListenerSet":
			s := &v1.ListenerSet{}
			in.ListenerSets, o = append(in.ListenerSets, s), s
		case "BackendTLSPolicy":
			p := &v1.BackendTLSPolicy{}
			in.BackendTLSPolicies, o = append(in.BackendTLSPolicies, p), p
		case "ReferenceGrant":
			g := &v1.ReferenceGrant{}
			in.Grants, o = append(in.Grants, g), g
		default:
			t.Fatalf("no kind: %s", one)
		}
		read(t, one, o)
		o.SetCreationTimestamp(metav1.NewTime(made))
		if o.GetNamespace() == "" {
			o.SetNamespace("home")
		}
	}
	return in
}

func read(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}
