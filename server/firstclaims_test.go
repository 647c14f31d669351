package server

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	k8sadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"

	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/server/caches"
)

// TestNoClaimPassesAnEmptyCache: a server that has just started knows of nobody who could lose something.
func TestNoClaimPassesAnEmptyCache(t *testing.T) {
	empty := &api{caches: &caches.Caches{SharedInformerFactory: informers.NewSharedInformerFactory(nil, 0)}, reserved: reserved.New()}
	plugin := empty.firstClaims()
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	balancer := &corev1.Service{Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 443, Protocol: corev1.ProtocolTCP}},
	}}
	for _, c := range []struct{ now, old runtime.Object }{
		{balancer, &corev1.Service{}}, {&networkingv1.Ingress{}, &networkingv1.Ingress{}},
	} {
		change := k8sadmission.NewAttributesRecord(c.now, c.old, schema.GroupVersionKind{}, "a", "web", schema.GroupVersionResource{}, "",
			k8sadmission.Update, nil, false, &user.DefaultInfo{Name: "tina"})
		if err := plugin.Validate(impatient, change, nil); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("%T: %v", c.now, err)
		}
	}
}
