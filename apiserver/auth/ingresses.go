package auth

import (
	"context"
	"log/slog"
	"sync"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

const (
	// IngressController is that of the IngressClasses whose Ingresses nodes serve.
	IngressController = "setpoint.io/ingress"
	// classAnnotation named the class before there was a field.
	classAnnotation = "kubernetes.io/ingress.class"
)

var (
	ingressesResource = networkingv1.SchemeGroupVersion.WithResource("ingresses")
	classesResource   = networkingv1.SchemeGroupVersion.WithResource("ingressclasses")
)

// ingressCertificates tracks which Secrets hold the certificates of Ingresses. It is safe for concurrent use.
type ingressCertificates struct {
	store     *storage.Store
	ingresses *storage.Follower // nil if the kind is not served

	mu sync.RWMutex
	// named is each Secret with the classes of the Ingresses that name it, and how often.
	named map[reference]map[string]int
}

func newIngressCertificates(store *storage.Store, logger *slog.Logger) *ingressCertificates {
	c := &ingressCertificates{store: store, named: map[reference]map[string]int{}}
	if store.Serves(ingressesResource) && store.Serves(classesResource) {
		c.ingresses = store.Table(ingressesResource).Follow(c.changed, logger)
	}
	return c
}

func (c *ingressCertificates) run(ctx context.Context) {
	if c.ingresses != nil {
		c.ingresses.Run(ctx)
	}
}

func (c *ingressCertificates) reach(ctx context.Context, revision uint64) error {
	if c.ingresses == nil {
		return nil
	}
	return c.ingresses.Reach(ctx, revision)
}

// names tells whether an Ingress names the Secret whose class is one that nodes serve.
func (c *ingressCertificates) names(namespace, secret string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for class := range c.named[reference{secretResource, namespace, secret}] {
		if c.served(class) {
			return true
		}
	}
	return false
}

func (c *ingressCertificates) served(class string) bool {
	found, err := c.store.Table(classesResource).Get(context.Background(), "", class, "0")
	return err == nil && found.Object().(*networkingv1.IngressClass).Spec.Controller == IngressController
}

func (c *ingressCertificates) changed(was, is resource.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if before, ok := was.(*networkingv1.Ingress); ok && before != nil {
		c.count(before, -1)
	}
	if after, ok := is.(*networkingv1.Ingress); ok && after != nil {
		c.count(after, 1)
	}
}

func (c *ingressCertificates) count(i *networkingv1.Ingress, by int) {
	class := i.Annotations[classAnnotation]
	if i.Spec.IngressClassName != nil {
		class = *i.Spec.IngressClassName
	}
	for _, t := range i.Spec.TLS {
		ref := reference{secretResource, i.Namespace, t.SecretName}
		classes := c.named[ref]
		if classes == nil {
			classes = make(map[string]int, 1)
			c.named[ref] = classes
		}
		if classes[class] += by; classes[class] == 0 {
			delete(classes, class)
		}
		if len(classes) == 0 {
			delete(c.named, ref)
		}
	}
}
