package credentials

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	kubeletv1 "k8s.io/kubelet/config/v1"
)

// Accounts reads the service accounts of this node's pods, for the plugins whose tokenAttributes ask for their tokens.
type Accounts interface {
	ServiceAccount(ctx context.Context, namespace, name string) (*corev1.ServiceAccount, error)
	// AccountToken is a token of the account that is bound to the pod.
	AccountToken(
		ctx context.Context, pod *corev1.Pod, account *corev1.ServiceAccount, audience string,
	) (token string, expires time.Time, err error)
}

// Asker is the pod for which an image is pulled, and where its account is read.
type Asker struct {
	Pod      *corev1.Pod
	Accounts Accounts
}

// Account is the service account by whose token a plugin gave a login, so that the login is not every pod's.
type Account struct{ Namespace, Name, UID string }

// identity is what a plugin is told of the pod's account. The zero one tells nothing: the answer is the node's.
type identity struct {
	account     *corev1.ServiceAccount
	annotations map[string]string
	// key tells answers for one identity from those for another.
	key string
}

// identify returns what the plugin may hear of the asker's account; ok is false if it is not to be asked for this pod.
func (p *plugin) identify(ctx context.Context, asker Asker) (who identity, ok bool, err error) {
	want := p.config.TokenAttributes
	if want == nil {
		return identity{}, true, nil
	}
	name := asker.Pod.Spec.ServiceAccountName
	if name == "" {
		return identity{}, !*want.RequireServiceAccount, nil
	}
	account, err := asker.Accounts.ServiceAccount(ctx, asker.Pod.Namespace, name)
	if err != nil {
		return identity{}, false, fmt.Errorf("failed to get service account: %w", err)
	}
	annotations, ok := told(want, account.Annotations)
	if !ok {
		return identity{}, false, nil
	}
	return identity{account, annotations, p.identityKey(account, annotations, asker.Pod)}, true, nil
}

// told are the annotations that the plugin is to know; ok is false if one that it requires is missing.
func told(want *kubeletv1.ServiceAccountTokenAttributes, all map[string]string) (annotations map[string]string, ok bool) {
	annotations = map[string]string{}
	for _, key := range want.RequiredServiceAccountAnnotationKeys {
		value, ok := all[key]
		if !ok {
			return nil, false
		}
		annotations[key] = value
	}
	for _, key := range want.OptionalServiceAccountAnnotationKeys {
		if value, ok := all[key]; ok {
			annotations[key] = value
		}
	}
	return annotations, true
}

// identityKey has the pod in it if an answer is good for one token only: tokens are bound to pods.
func (p *plugin) identityKey(account *corev1.ServiceAccount, annotations map[string]string, pod *corev1.Pod) string {
	key := fmt.Sprintf("%q %q %q", account.Namespace, account.Name, account.UID)
	if p.config.TokenAttributes.CacheType == kubeletv1.TokenServiceAccountTokenCacheType {
		key += fmt.Sprintf(" pod %q", pod.UID)
	}
	for _, name := range sets.List(sets.KeySet(annotations)) {
		key += fmt.Sprintf(" %q=%q", name, annotations[name])
	}
	return key
}

// origin is whose the answer for this identity is; nil: the node's.
func (i identity) origin() *Account {
	if i.account == nil {
		return nil
	}
	return &Account{i.account.Namespace, i.account.Name, string(i.account.UID)}
}

// tokenTimeMax bounds a request for a token.
const tokenTimeMax = 30 * time.Second

// tokenShare is the part of a token's life after which a kubelet asks for another, in percent.
const tokenShare = 80

// token is empty without an account. fresh is how long an answer that depends on it may be kept.
func (p *plugin) token(ctx context.Context, asker Asker, who identity) (token string, fresh time.Duration, err error) {
	if who.account == nil {
		return "", 0, nil
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeMax)
	defer cancel()
	token, expires, err := asker.Accounts.AccountToken(ctx, asker.Pod, who.account, p.config.TokenAttributes.ServiceAccountTokenAudience)
	if err != nil {
		return "", 0, fmt.Errorf("failed to get service account token: %w", err)
	}
	return token, time.Until(expires) * tokenShare / 100, nil
}

var errEcho = errors.New("credential provider plugin returned the service account token as the password which is not allowed " +
	"when service account cache type is not set to 'Token'")

// tokenRule is one of those that tokenAttributes have to keep.
type tokenRule struct {
	bad         bool
	field, want string
}

// checkTokens has upstream's rules.
func checkTokens(c *kubeletv1.CredentialProvider) error {
	t := c.TokenAttributes
	if t == nil {
		return nil
	}
	required, optional := t.RequiredServiceAccountAnnotationKeys, t.OptionalServiceAccountAnnotationKeys
	for _, rule := range []tokenRule{
		{t.ServiceAccountTokenAudience == "", "serviceAccountTokenAudience", "the audience of the tokens"},
		{t.RequireServiceAccount == nil, "requireServiceAccount", "true or false"},
		{
			t.CacheType != kubeletv1.ServiceAccountServiceAccountTokenCacheType && t.CacheType != kubeletv1.TokenServiceAccountTokenCacheType,
			"cacheType", "ServiceAccount or Token",
		},
		{
			t.RequireServiceAccount != nil && !*t.RequireServiceAccount && len(required) > 0,
			"requiredServiceAccountAnnotationKeys", "nothing if requireServiceAccount is false",
		},
		{!annotationKeys(required), "requiredServiceAccountAnnotationKeys", "names of annotations, each once"},
		{!annotationKeys(optional), "optionalServiceAccountAnnotationKeys", "names of annotations, each once"},
		{sets.New(required...).HasAny(optional...), "optionalServiceAccountAnnotationKeys", "none that is required"},
	} {
		if rule.bad {
			return fmt.Errorf("tokenAttributes.%s: want %s", rule.field, rule.want)
		}
	}
	return nil
}

func annotationKeys(keys []string) bool {
	for _, key := range keys {
		if len(validation.IsQualifiedName(strings.ToLower(key))) > 0 {
			return false
		}
	}
	return sets.New(keys...).Len() == len(keys)
}
