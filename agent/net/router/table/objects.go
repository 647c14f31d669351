package table

import (
	"crypto/tls"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// Secrets are those that hold the certificates of the Ingresses, in their order.
func Secrets(ingresses []*networkingv1.Ingress) []types.NamespacedName {
	var names []types.NamespacedName
	for _, i := range ingresses {
		for _, t := range i.Spec.TLS {
			if t.SecretName != "" {
				names = append(names, types.NamespacedName{Namespace: i.Namespace, Name: t.SecretName})
			}
		}
	}
	return names
}

// ServiceFrom is an Input's Service from a cache.
func ServiceFrom(services corelisters.ServiceLister) func(namespace, name string) *corev1.Service {
	return func(namespace, name string) *corev1.Service {
		service, err := services.Services(namespace).Get(name)
		if err != nil {
			return nil // a cache knows no other error than that it is missing
		}
		return service
	}
}

var errNoCertificate = errors.New("it has no tls.crt or no tls.key")

// CertificateOf reads the certificate of a Secret. The error shows nothing of the key.
func CertificateOf(secret *corev1.Secret) (*tls.Certificate, error) {
	certificate, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if len(certificate) == 0 || len(key) == 0 {
		return nil, errNoCertificate
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("its certificate cannot be used: %w", err)
	}
	return &pair, nil
}

// NodeProblem is True on a Node where other software has a port of Ingresses: who asks there meets that, so the node's address is none of
// theirs.
const NodeProblem corev1.NodeConditionType = "IngressProblem"

// NoSlices is an Input's Slices for who wants the Problems only.
func NoSlices(string, string) []*discoveryv1.EndpointSlice { return nil }
