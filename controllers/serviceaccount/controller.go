package serviceaccount

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// Name is the account that pods use when they name none.
const Name = "default"

// Config is what the controller needs for one term.
type Config struct {
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory
	Logger    *slog.Logger
}

type controller struct{ cfg Config }

// Warm creates the informers that the controller reads.
func Warm(f informers.SharedInformerFactory) error {
	f.Core().V1().Namespaces().Informer()
	f.Core().V1().ServiceAccounts().Informer()
	return nil
}

// Run keeps the accounts until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	c := &controller{cfg}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "serviceaccount",
		Reconcile: c.reconcile,
		Sources: []reconcile.Source{
			reconcile.Self(cfg.Informers.Core().V1().Namespaces().Informer()),
			{Informer: cfg.Informers.Core().V1().ServiceAccounts().Informer(), Map: accountChanged},
		},
		Logger: cfg.Logger,
	})
}

// accountChanged maps a deleted default account to its namespace.
func accountChanged(before, after metav1.Object) []reconcile.Key {
	if after != nil || before.GetName() != Name {
		return nil
	}
	return []reconcile.Key{{Name: before.GetNamespace()}}
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
	if _, err := c.cfg.Informers.Core().V1().ServiceAccounts().Lister().ServiceAccounts(ns.Name).Get(Name); !apierrors.IsNotFound(err) {
		return 0, err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: ns.Name}}
	_, err = c.cfg.Client.CoreV1().ServiceAccounts(ns.Name).Create(reconcile.WithCause(ctx, ns), account, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return 0, nil
	}
	return 0, fmt.Errorf("create account: %w", err)
}
