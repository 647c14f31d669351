package tokens

import (
	"context"
	"crypto/subtle"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

const (
	// invalidSinceLabel marks a secret whose token nobody has used for long.
	invalidSinceLabel = "kubernetes.io/legacy-token-invalid-since"
	// lastUsedLabel is the day, in UTC, on which a token was last used.
	lastUsedLabel = "kubernetes.io/legacy-token-last-used"
	dateFormat    = "2006-01-02"
)

// legacyHolder: the token must be the one that its secret holds now.
func (a *Authenticator) legacyHolder(ctx context.Context, token string, c *claims) (*serviceaccount.ServiceAccountInfo, error) {
	l := &c.legacyClaims
	if l.Namespace == "" || l.Account == "" || l.AccountUID == "" || l.Secret == "" ||
		c.Subject != serviceaccount.MakeUsername(l.Namespace, l.Account) {
		return nil, ErrClaims
	}
	secret, err := a.secretOf(ctx, l, token, "0")
	if err != nil {
		if secret, err = a.secretOf(ctx, l, token, ""); err != nil {
			return nil, err
		}
	}
	if err := a.require(ctx, []requirement{{accountsResource, l.Namespace, l.Account, l.AccountUID}}); err != nil {
		return nil, err
	}
	a.note(secret, a.objects.Now())
	if secret.Labels[invalidSinceLabel] != "" {
		return nil, fmt.Errorf("%w: its secret is labelled %s; remove the label to use it again", ErrInvalidated, invalidSinceLabel)
	}
	return &serviceaccount.ServiceAccountInfo{Namespace: l.Namespace, Name: l.Account, UID: l.AccountUID}, nil
}

func (a *Authenticator) secretOf(ctx context.Context, l *legacyClaims, token, resourceVersion string) (*corev1.Secret, error) {
	found, err := a.objects.Table(secretsResource).Get(ctx, l.Namespace, l.Secret, resourceVersion)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, err
	}
	if err != nil || found.Object().GetDeletionTimestamp() != nil {
		return nil, fmt.Errorf("%w: its secret is gone", ErrInvalidated)
	}
	secret := found.Object().(*corev1.Secret)
	if subtle.ConstantTimeCompare(secret.Data[corev1.ServiceAccountTokenKey], []byte(token)) == 0 {
		return nil, fmt.Errorf("%w: its secret holds another one", ErrInvalidated)
	}
	return secret, nil
}
