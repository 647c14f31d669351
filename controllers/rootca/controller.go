package rootca

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

const (
	// Name is the ConfigMap that projected service account volumes refer to.
	Name = "kube-root-ca.crt"
	// bundleKey is its only key.
	bundleKey = "ca.crt"
)

// Config is what the controller needs for one term.
type Config struct {
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory
	// Bundles holds the ConfigMaps called Name; others in it are passed over.
	Bundles cache.SharedIndexInformer
	// Bundle is the PEM bundle to publish; empty publishes nothing.
	Bundle []byte
	Logger *slog.Logger
}

type controller struct{ cfg Config }

// Warm creates the informers that the controller reads.
func Warm(f informers.SharedInformerFactory) error {
	f.Core().V1().Namespaces().Informer()
	return nil
}

// Run keeps the ConfigMaps until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	if len(cfg.Bundle) == 0 {
		<-ctx.Done()
		return nil
	}
	c := &controller{cfg}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "rootca",
		Reconcile: c.reconcile,
		Sources: []reconcile.Source{
			reconcile.Self(cfg.Informers.Core().V1().Namespaces().Informer()),
			{Informer: cfg.Bundles, Map: mapChanged},
		},
		Logger: cfg.Logger,
	})
}

// mapChanged maps the bundle's ConfigMap to its namespace.
func mapChanged(before, after metav1.Object) []reconcile.Key {
	changed := after
	if changed == nil {
		changed = before
	}
	if changed.GetName() != Name {
		return nil
	}
	return []reconcile.Key{{Name: changed.GetNamespace()}}
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	ns, err := c.cfg.Informers.Core().V1().Namespaces().Lister().Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if ns.DeletionTimestamp != nil {
		return 0, nil
	}
	err = c.publish(reconcile.WithCause(ctx, ns), ns.Name)
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return 0, nil
	}
	return 0, fmt.Errorf("publish bundle: %w", err)
}

func (c *controller) publish(ctx context.Context, namespace string) error {
	data := map[string]string{bundleKey: string(c.cfg.Bundle)}
	configMaps := c.cfg.Client.CoreV1().ConfigMaps(namespace)
	found, err := corelisters.NewConfigMapLister(c.cfg.Bundles.GetIndexer()).ConfigMaps(namespace).Get(Name)
	switch {
	case apierrors.IsNotFound(err):
		fresh := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: namespace}, Data: data}
		_, err = configMaps.Create(ctx, fresh, metav1.CreateOptions{})
		return err
	case err != nil:
		return err
	case maps.Equal(found.Data, data):
		return nil
	}
	next := found.DeepCopy()
	next.Data = data
	_, err = configMaps.Update(ctx, next, metav1.UpdateOptions{})
	return err
}
