package legacytoken

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// Tokens makes tokens that are good as long as their Secret is.
type Tokens interface {
	IssueLegacy(account *corev1.ServiceAccount, secret *corev1.Secret) (string, error)
}

// New keeps the Secrets of tokens. rootCA is the PEM bundle that goes beside a token; it may be
// empty. If tokens is nil, they are left to others.
func New(tokens Tokens, rootCA []byte) reconcile.Controller {
	return reconcile.Controller{
		Name:  "tokens-controller",
		Reads: []reconcile.Read{reconcile.ServiceAccounts},
		Run: func(ctx context.Context, env *reconcile.Env) error {
			if tokens == nil {
				return reconcile.Idle(ctx)
			}
			c := &controller{
				env:      env,
				tokens:   tokens,
				rootCA:   rootCA,
				secrets:  newSecrets(env.Client),
				accounts: reconcile.ServiceAccounts.From(env),
			}
			return c.run(ctx)
		},
	}
}

type controller struct {
	env      *reconcile.Env
	tokens   Tokens
	rootCA   []byte
	secrets  cache.SharedIndexInformer
	accounts reconcile.Cache[*corev1.ServiceAccount]
}

func (c *controller) run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { c.secrets.RunWithContext(ctx) })
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "legacytoken",
		Queue:     "serviceaccount_tokens_secret",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{{Informer: c.secrets, Map: secretChanged}, reconcile.Changes(c.accounts, c.accountChanged)},
		Env:       c.env,
	})
}

// newSecrets follows the Secrets of this type alone, for one term: they are few, and most
// servers do not lead.
func newSecrets(client kubernetes.Interface) cache.SharedIndexInformer {
	return coreinformers.NewFilteredSecretInformer(
		client,
		metav1.NamespaceAll,
		0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		func(o *metav1.ListOptions) { o.FieldSelector = "type=" + string(corev1.SecretTypeServiceAccountToken) },
	)
}

func (c *controller) lister() corelisters.SecretLister {
	return corelisters.NewSecretLister(c.secrets.GetIndexer())
}

func secretChanged(_, after metav1.Object) []reconcile.Key {
	if secret, ok := after.(*corev1.Secret); ok && secret.Type == corev1.SecretTypeServiceAccountToken {
		return []reconcile.Key{reconcile.KeyOf(secret)}
	}
	return nil
}

// accountChanged maps an account that came or went to its Secrets.
func (c *controller) accountChanged(before, after metav1.Object) []reconcile.Key {
	if before != nil && after != nil && before.GetUID() == after.GetUID() {
		return nil
	}
	account := after
	if account == nil {
		account = before
	}
	secrets, err := c.lister().Secrets(account.GetNamespace()).List(labels.Everything())
	if err != nil {
		return nil // a lister of a cache has no errors
	}
	var keys []reconcile.Key
	for _, s := range secrets {
		if s.Annotations[corev1.ServiceAccountNameKey] == account.GetName() {
			keys = append(keys, secretChanged(nil, s)...)
		}
	}
	return keys
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	secret, err := c.lister().Secrets(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) || err == nil && secret.DeletionTimestamp != nil {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	account, err := c.account(ctx, secret)
	switch {
	case err != nil:
		return 0, err
	case account == nil:
		return 0, c.remove(ctx, secret)
	}
	next, err := c.filled(secret, account)
	if err != nil || apiequality.Semantic.DeepEqual(next, secret) {
		return 0, err
	}
	_, err = c.env.Client.CoreV1().Secrets(key.Namespace).Update(reconcile.WithCause(ctx, account), next, metav1.UpdateOptions{})
	if err == nil || apierrors.IsNotFound(err) {
		return 0, nil
	}
	return 0, fmt.Errorf("fill secret: %w", err)
}

// account returns the one that the Secret is for, or nil if there is none any more.
func (c *controller) account(ctx context.Context, secret *corev1.Secret) (*corev1.ServiceAccount, error) {
	name := secret.Annotations[corev1.ServiceAccountNameKey]
	account, err := c.accounts.Get(reconcile.Key{Namespace: secret.Namespace, Name: name})
	if err == nil && isFor(secret, account) {
		return account, nil
	}
	account, err = c.env.Client.CoreV1().ServiceAccounts(secret.Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && !isFor(secret, account):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get account: %w", err)
	}
	return account, nil
}

func isFor(secret *corev1.Secret, account *corev1.ServiceAccount) bool {
	uid := secret.Annotations[corev1.ServiceAccountUIDKey]
	return uid == "" || uid == string(account.UID)
}

func (c *controller) remove(ctx context.Context, secret *corev1.Secret) error {
	err := c.env.Client.CoreV1().Secrets(secret.Namespace).Delete(ctx, secret.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion},
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("delete secret of an account that is gone: %w", err)
}

// filled is the Secret as it should be.
func (c *controller) filled(secret *corev1.Secret, account *corev1.ServiceAccount) (*corev1.Secret, error) {
	next := secret.DeepCopy()
	next.Annotations = maps.Clone(secret.Annotations)
	next.Annotations[corev1.ServiceAccountUIDKey] = string(account.UID)
	if next.Data == nil {
		next.Data = map[string][]byte{}
	}
	if len(c.rootCA) > 0 && !bytes.Equal(next.Data[corev1.ServiceAccountRootCAKey], c.rootCA) {
		next.Data[corev1.ServiceAccountRootCAKey] = c.rootCA
	}
	if len(next.Data[corev1.ServiceAccountNamespaceKey]) == 0 {
		next.Data[corev1.ServiceAccountNamespaceKey] = []byte(secret.Namespace)
	}
	if len(next.Data[corev1.ServiceAccountTokenKey]) == 0 {
		token, err := c.tokens.IssueLegacy(account, next)
		if err != nil {
			return nil, err
		}
		next.Data[corev1.ServiceAccountTokenKey] = []byte(token)
	}
	return next, nil
}
