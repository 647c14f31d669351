package gateway

import (
	"crypto/sha256"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "sigs.k8s.io/gateway-api/apis/v1"
)

// serviceNameMax is how long a Service's name may be, in bytes.
const serviceNameMax = 63

// ServiceName is what the Service is called that gives a Gateway an address of its own.
func ServiceName(g *v1.Gateway) string {
	name := "gateway-" + g.Name
	if len(name) <= serviceNameMax {
		return name
	}
	sum := sha256.Sum256([]byte(g.Name))
	return name[:serviceNameMax-9] + "-" + hex.EncodeToString(sum[:4])
}

// Owns tells whether a Service, which may be nil, is the Gateway's, and not one of somebody who took its name.
func Owns(g *v1.Gateway, service *corev1.Service) bool {
	return service != nil && metav1.IsControlledBy(service, g)
}

// portOf is where nodes serve a listener: its port, which it shares with other Gateways, or if the Gateway has an address of its own the
// node port to which that address leads; 0: there is none yet.
func (b *builder) portOf(l *listener) (number int, own bool) {
	service := b.Service(l.gateway.Namespace, ServiceName(l.gateway))
	if !Owns(l.gateway, service) {
		return int(l.spec.Port), false
	}
	for _, p := range service.Spec.Ports {
		if p.Port == l.spec.Port {
			return int(p.NodePort), true
		}
	}
	return 0, true
}
