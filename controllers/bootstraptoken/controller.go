package bootstraptoken

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/jws"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// New looks after the tokens. clusterInfo is the kubeconfig that cluster-info begins with,
// without a user; if it is empty, making it is left to the administrator.
func New(clusterInfo []byte) reconcile.Controller {
	return reconcile.Controller{Name: "bootstrap-token-controller", Account: "bootstrap-signer", Run: func(ctx context.Context, env *reconcile.Env) error {
		c := &controller{env: env, clusterInfo: clusterInfo, secrets: newSecrets(env.Client)}
		return c.run(ctx)
	}}
}

type controller struct {
	env         *reconcile.Env
	clusterInfo []byte
	secrets     cache.SharedIndexInformer
}

func (c *controller) run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { c.secrets.RunWithContext(ctx) })
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "bootstraptoken",
		Queue:     "bootstrap_signer_queue",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{{Informer: c.secrets, Map: tokenChanged}},
		Feeds:     []reconcile.Feed{reconcile.Once(all[0])},
		Env:       c.env,
	})
}

// lookInterval is how often cluster-info is looked at while it has to be there or to be signed.
const lookInterval = time.Minute

// all is the only key: tokens are few, and signed together.
var all = []reconcile.Key{{Namespace: metav1.NamespacePublic, Name: bootstrapapi.ConfigMapClusterInfo}}

// newSecrets follows the tokens alone, for one term: they are few, and most servers do
// not lead.
func newSecrets(client kubernetes.Interface) cache.SharedIndexInformer {
	return coreinformers.NewFilteredSecretInformer(
		client,
		metav1.NamespaceSystem,
		0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
		func(o *metav1.ListOptions) { o.FieldSelector = "type=" + string(bootstrapapi.SecretTypeBootstrapToken) },
	)
}

func tokenChanged(before, after metav1.Object) []reconcile.Key {
	for _, o := range []metav1.Object{before, after} {
		if secret, ok := o.(*corev1.Secret); ok && isToken(secret) {
			return all
		}
	}
	return nil
}

func isToken(secret *corev1.Secret) bool {
	return secret.Type == bootstrapapi.SecretTypeBootstrapToken && secret.Namespace == metav1.NamespaceSystem
}

// reconcile asks to be called again when the next token expires, and soon while
// cluster-info may be gone or have something new to sign.
func (c *controller) reconcile(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
	secrets, err := corelisters.NewSecretLister(c.secrets.GetIndexer()).Secrets(metav1.NamespaceSystem).List(labels.Everything())
	if err != nil {
		return 0, err
	}
	now := c.env.Now()
	var next time.Duration
	signing := map[string]string{}
	for _, secret := range secrets {
		if !isToken(secret) || secret.DeletionTimestamp != nil {
			continue
		}
		left, ends := life(secret, now)
		if ends && left <= 0 {
			if err := c.remove(ctx, secret); err != nil {
				return 0, err
			}
			continue
		}
		if ends && (next == 0 || left < next) {
			next = left
		}
		if id, key, ok := mayJudge(secret); ok {
			signing[id] = key
		}
	}
	if (len(signing) > 0 || len(c.clusterInfo) > 0) && (next == 0 || next > lookInterval) {
		next = lookInterval
	}
	return next, c.sign(ctx, signing)
}

// life is how long a token is good from now on. One whose end cannot be read is good no more.
func life(secret *corev1.Secret, now time.Time) (left time.Duration, ends bool) {
	text := string(secret.Data[bootstrapapi.BootstrapTokenExpirationKey])
	if text == "" {
		return 0, false
	}
	end, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, true
	}
	return end.Sub(now), true
}

// mayJudge returns a token that is good for signing, by its two parts.
func mayJudge(secret *corev1.Secret) (id, key string, ok bool) {
	id, key = string(secret.Data[bootstrapapi.BootstrapTokenIDKey]), string(secret.Data[bootstrapapi.BootstrapTokenSecretKey])
	ok = id != "" && key != "" && secret.Name == bootstrapapi.BootstrapTokenSecretPrefix+id &&
		string(secret.Data[bootstrapapi.BootstrapTokenUsageSigningKey]) == "true"
	return id, key, ok
}

func (c *controller) remove(ctx context.Context, secret *corev1.Secret) error {
	err := c.env.Client.CoreV1().Secrets(secret.Namespace).Delete(ctx, secret.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion},
	})
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("delete expired token: %w", err)
}

// sign writes the signatures, if there is something to sign.
func (c *controller) sign(ctx context.Context, tokens map[string]string) error {
	info, err := c.env.Client.CoreV1().ConfigMaps(all[0].Namespace).Get(ctx, all[0].Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return c.make(ctx, tokens)
	}
	if err != nil {
		return err
	}
	data, err := signed(info.Data, tokens)
	if err != nil || maps.Equal(data, info.Data) {
		return err
	}
	next := info.DeepCopy()
	next.Data = data
	if _, err := c.env.Client.CoreV1().ConfigMaps(info.Namespace).Update(reconcile.WithCause(ctx, info), next,
		metav1.UpdateOptions{}); err != nil &&
		!apierrors.IsNotFound(err) {
		return fmt.Errorf("sign cluster-info: %w", err)
	}
	return nil
}

// make creates cluster-info, signed. A namespace that is gone or going is no error: the
// next look finds it if it comes back.
func (c *controller) make(ctx context.Context, tokens map[string]string) error {
	if len(c.clusterInfo) == 0 {
		return nil
	}
	data, err := signed(map[string]string{bootstrapapi.KubeConfigKey: string(c.clusterInfo)}, tokens)
	if err != nil {
		return err
	}
	info := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: all[0].Namespace, Name: all[0].Name}, Data: data}
	_, err = c.env.Client.CoreV1().ConfigMaps(info.Namespace).Create(ctx, info, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) ||
		apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil
	}
	return fmt.Errorf("make cluster-info: %w", err)
}

// signed is the data with a signature of each token, and no others.
func signed(data, tokens map[string]string) (map[string]string, error) {
	content, has := data[bootstrapapi.KubeConfigKey]
	if !has {
		return data, nil
	}
	next := maps.Clone(data)
	maps.DeleteFunc(next, func(key, _ string) bool { return strings.HasPrefix(key, bootstrapapi.JWSSignatureKeyPrefix) })
	for id, key := range tokens {
		signature, err := jws.ComputeDetachedSignature(content, id, key)
		if err != nil {
			return nil, fmt.Errorf("sign for token %s: %w", id, err)
		}
		next[bootstrapapi.JWSSignatureKeyPrefix+id] = signature
	}
	return next, nil
}
