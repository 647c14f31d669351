package tokens

import (
	"fmt"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4/jwt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// DefaultIssuer is the issuer of tokens, and their audience if no other is requested.
const DefaultIssuer = "https://kubernetes.default.svc.cluster.local"

const (
	// lenientLife is the life that upstream gives to the token in every pod. A
	// program that reads its token only once would fail after it, so such a token
	// is in truth good for extendedLife; the agent renews it as if it were not.
	lenientLife  = 3607 * time.Second
	extendedLife = 365 * 24 * time.Hour
)

// Issuer makes tokens. It is safe for concurrent use.
type Issuer struct {
	keys      func() *Keys
	name      string
	audiences []string
}

// NewIssuer returns an issuer of this name, a URL. keys are asked for at each use: they
// may be others each time. The API itself answers to the audiences, or, if there are
// none, to the issuer's name.
func NewIssuer(keys func() *Keys, name string, audiences ...string) *Issuer {
	if len(audiences) == 0 {
		audiences = []string{name}
	}
	return &Issuer{keys: keys, name: name, audiences: audiences}
}

// Name is the issuer in its tokens.
func (i *Issuer) Name() string { return i.name }

// Audiences are those that the API answers to.
func (i *Issuer) Audiences() []string { return slices.Clone(i.audiences) }

// Issue makes a token for account that is good from now on for the life asked for.
func (i *Issuer) Issue(
	account *corev1.ServiceAccount,
	bound Binding,
	audiences []string,
	life time.Duration,
	now time.Time,
) (string, error) {
	warnAfter := time.Duration(0)
	if life == lenientLife && bound.Pod != nil && i.answersTo(audiences) {
		life, warnAfter = extendedLife, life
	}
	return i.sign(i.name, newClaims(account, bound, audiences, life, warnAfter, now))
}

// answersTo reports whether the API answers to all of the audiences.
func (i *Issuer) answersTo(audiences []string) bool {
	return !slices.ContainsFunc(audiences, func(a string) bool { return !slices.Contains(i.audiences, a) })
}

// IssueLegacy makes the token that is kept in a secret and good as long as the secret is.
func (i *Issuer) IssueLegacy(account *corev1.ServiceAccount, secret *corev1.Secret) (string, error) {
	return i.sign(legacyIssuer, &claims{
		Claims: jwt.Claims{Subject: serviceaccount.MakeUsername(account.Namespace, account.Name)},
		legacyClaims: legacyClaims{
			Account: account.Name, AccountUID: string(account.UID), Secret: secret.Name, Namespace: account.Namespace,
		},
	})
}

func (i *Issuer) sign(issuer string, c *claims) (string, error) {
	c.Issuer = issuer
	token, err := jwt.Signed(i.keys().signer).Claims(c).Serialize()
	if err != nil {
		return "", fmt.Errorf("service account token: %w", err)
	}
	return token, nil
}
