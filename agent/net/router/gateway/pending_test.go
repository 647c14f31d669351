package gateway

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/internal/gatewayapi"
)

// TestAListenerWithoutANodePortIsPending: the Service of its Gateway has one for another listener only, as where the namespace has its share.
func TestAListenerWithoutANodePortIsPending(t *testing.T) {
	in := world(t, "kind: Gateway\nmetadata: {name: g, uid: u}\nspec:\n  gatewayClassName: ours\n  listeners: [{name: a, port: 80, protocol: HTTP}, {name: b, port: 81, protocol: HTTP}]\n")
	g := in.Gateways[0]
	g.UID = types.UID("u")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{
		Namespace: g.Namespace, Name: ServiceName(g), OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(g, gatewayapi.GroupVersion.WithKind("Gateway"))},
	}}
	service.Spec.Ports = []corev1.ServicePort{{Port: 80, NodePort: 30080}}
	in.Service = func(string, string) *corev1.Service { return service }
	built := Build(in)
	for i, want := range []v1.ListenerConditionReason{v1.ListenerReasonProgrammed, v1.ListenerReasonPending} {
		programmed := meta.FindStatusCondition(built.Gateways[0].Listeners[i].Conditions, string(v1.ListenerConditionProgrammed))
		if programmed.Reason != string(want) {
			t.Errorf("listener %d: %+v, want %s", i, programmed, want)
		}
	}
	if built.Ports[30080] == nil || len(built.Ports) != 1 {
		t.Errorf("ports %v", built.Ports)
	}
}
