package legacytoken

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

const (
	// interval is the pause between two looks at all tokens; upstream's.
	interval = 24 * time.Hour
	// page is how many Secrets are listed at once.
	page = 500
	// trackingConfig, in kube-system, says since which day the use of tokens is recorded, under trackingKey.
	trackingConfig = "kube-apiserver-legacy-service-account-token-tracking"
	trackingKey    = "since"
)

// NewCleaner ends tokens that nobody has used for a year, and deletes their Secrets a year later.
func NewCleaner() reconcile.Controller {
	return reconcile.Controller{
		Name:    "legacy-serviceaccount-token-cleaner-controller",
		Account: "legacy-service-account-token-cleaner",
		Reads:   []reconcile.Read{reconcile.ServiceAccounts, reconcile.Pods},
		Run:     runCleaner,
	}
}

type cleaner struct {
	env      *reconcile.Env
	accounts reconcile.Cache[*corev1.ServiceAccount]
	pods     reconcile.Cache[*corev1.Pod]
}

func runCleaner(ctx context.Context, env *reconcile.Env) error {
	c := &cleaner{env, reconcile.ServiceAccounts.From(env), reconcile.Pods.From(env)}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "legacytokencleaner",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{reconcile.Filled(c.accounts), reconcile.Filled(c.pods)},
		Feeds:     []reconcile.Feed{reconcile.Once(reconcile.Key{Name: "all tokens"})},
		Workers:   1,
		Env:       env,
	})
}

func (c *cleaner) reconcile(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
	tracking, err := c.env.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, trackingConfig, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return interval, nil // it is about to be made
	}
	if err != nil {
		return 0, fmt.Errorf("since when tokens are tracked: %w", err)
	}
	enough, err := trackedLongEnough(tracking.Data[trackingKey], c.env.Now())
	if err != nil {
		c.env.Logger.Warn("nobody knows since when tokens are tracked", "configMap", trackingConfig, "err", err)
	}
	if !enough {
		return interval, nil
	}
	return interval, c.clean(ctx)
}

// clean looks at the Secrets of all tokens, a page at a time. What fails does not keep the others.
func (c *cleaner) clean(ctx context.Context) error {
	var errs []error
	mounted := map[string]map[string]bool{}
	options := metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeServiceAccountToken), Limit: page}
	for {
		secrets, err := c.env.Client.CoreV1().Secrets("").List(ctx, options)
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("list tokens: %w", err))...)
		}
		for i := range secrets.Items {
			errs = append(errs, c.act(ctx, &secrets.Items[i], mounted))
		}
		if options.Continue = secrets.Continue; options.Continue == "" {
			return errors.Join(errs...)
		}
	}
}

// act does what becomes of one Secret. mounted are those that pods refer to, of the namespaces that were needed so far.
func (c *cleaner) act(ctx context.Context, secret *corev1.Secret, mounted map[string]map[string]bool) error {
	account, err := c.accounts.Get(reconcile.Key{Namespace: secret.Namespace, Name: secret.Annotations[corev1.ServiceAccountNameKey]})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	var pods error
	what := judge(secret, account, func() map[string]bool {
		if mounted[secret.Namespace] == nil {
			mounted[secret.Namespace], pods = c.mounted(secret.Namespace)
		}
		return mounted[secret.Namespace]
	}, c.env.Now())
	if pods != nil || what == stays {
		return pods
	}
	ctx = reconcile.WithCause(ctx, secret)
	if what == invalidated {
		c.env.Logger.Info("token that nobody uses is refused from now on", "namespace", secret.Namespace, "secret", secret.Name)
		return c.invalidate(ctx, secret)
	}
	c.env.Logger.Info("token that nobody uses deleted", "namespace", secret.Namespace, "secret", secret.Name,
		"lastUsed", secret.Labels[lastUsedLabel])
	err = c.env.Client.CoreV1().Secrets(secret.Namespace).Delete(ctx, secret.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion},
	})
	return ignoreMoved(err)
}

// mounted are the names of the Secrets that the pods of a namespace refer to.
func (c *cleaner) mounted(namespace string) (map[string]bool, error) {
	pods, err := c.pods.List(namespace, nil)
	names := map[string]bool{}
	for _, pod := range pods {
		secretsOf(pod, func(name string) { names[name] = true })
	}
	return names, err
}

// invalidate labels a Secret, if it is still the same.
func (c *cleaner) invalidate(ctx context.Context, secret *corev1.Secret) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": secret.UID, "labels": map[string]string{invalidSinceLabel: c.env.Now().UTC().Format(dateFormat)},
	}})
	if err != nil {
		return err
	}
	_, err = c.env.Client.CoreV1().Secrets(secret.Namespace).Patch(ctx, secret.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return ignoreMoved(err)
}

// ignoreMoved: a Secret that has gone or changed is judged again by the next pass.
func ignoreMoved(err error) error {
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("secret of a token: %w", err)
}
