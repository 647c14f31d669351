package serviceaccount

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// Name is the account that pods use when they name none.
const Name = "default"

// New keeps the accounts.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:    "serviceaccount-controller",
		Account: "service-account-controller",
		Reads:   []reconcile.Read{reconcile.Namespaces, reconcile.ServiceAccounts},
		Run:     run,
	}
}

type controller struct {
	env        *reconcile.Env
	namespaces reconcile.Cache[*corev1.Namespace]
	accounts   reconcile.Cache[*corev1.ServiceAccount]
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{env: env, namespaces: reconcile.Namespaces.From(env), accounts: reconcile.ServiceAccounts.From(env)}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "serviceaccount",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{reconcile.Self(c.namespaces), reconcile.Changes(c.accounts, accountChanged)},
		Env:       env,
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
	ns, err := c.namespaces.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	if ns.DeletionTimestamp != nil {
		return 0, nil
	}
	if _, err := c.accounts.Get(reconcile.Key{Namespace: ns.Name, Name: Name}); !apierrors.IsNotFound(err) {
		return 0, err
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: Name, Namespace: ns.Name}}
	_, err = c.env.Client.CoreV1().ServiceAccounts(ns.Name).Create(reconcile.WithCause(ctx, ns), account, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return 0, nil
	}
	return 0, fmt.Errorf("create account: %w", err)
}
