package rootca

import (
	"context"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

const (
	// Name is the ConfigMap that projected service account volumes refer to.
	Name = "kube-root-ca.crt"
	// Key is its only key.
	Key = "ca.crt"
	// descriptionKey is an annotation that tells people what the bundle is good for.
	descriptionKey = "kubernetes.io/description"
	description    = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. " +
		"No other usage is guaranteed across distributions of Kubernetes clusters."
)

// bundles are the ConfigMaps that the controller keeps.
var bundles = reconcile.ConfigMaps.Called(Name)

// New publishes a PEM bundle in every namespace; an empty one publishes nothing.
func New(bundle []byte) reconcile.Controller {
	return reconcile.Controller{
		Name:  "root-ca-cert-publisher",
		Reads: []reconcile.Read{reconcile.Namespaces, bundles},
		Run:   func(ctx context.Context, env *reconcile.Env) error { return run(ctx, env, bundle) },
	}
}

type controller struct {
	env        *reconcile.Env
	bundle     []byte
	namespaces reconcile.Cache[*corev1.Namespace]
	bundles    reconcile.Cache[*corev1.ConfigMap]
}

func run(ctx context.Context, env *reconcile.Env, bundle []byte) error {
	if len(bundle) == 0 {
		return reconcile.Idle(ctx)
	}
	c := &controller{env: env, bundle: bundle, namespaces: reconcile.Namespaces.From(env), bundles: bundles.From(env)}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "rootca",
		Queue:     "root_ca_cert_publisher",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{reconcile.Self(c.namespaces), reconcile.Changes(c.bundles, mapChanged)},
		Env:       env,
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
	ns, err := c.namespaces.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
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
	data := map[string]string{Key: string(c.bundle)}
	configMaps := c.env.Client.CoreV1().ConfigMaps(namespace)
	found, err := c.bundles.Get(reconcile.Key{Namespace: namespace, Name: Name})
	switch {
	case apierrors.IsNotFound(err):
		fresh := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: namespace, Annotations: map[string]string{descriptionKey: description}},
			Data:       data,
		}
		_, err = configMaps.Create(ctx, fresh, metav1.CreateOptions{})
		return err
	case err != nil:
		return err
	case maps.Equal(found.Data, data) && found.Annotations[descriptionKey] != "":
		return nil
	}
	next := found.DeepCopy()
	next.Data = data
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, descriptionKey, description)
	_, err = configMaps.Update(ctx, next, metav1.UpdateOptions{})
	return err
}
