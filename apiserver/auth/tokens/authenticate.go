package tokens

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	tokenjwt "k8s.io/apiserver/pkg/authentication/token/jwt"
	"k8s.io/utils/lru"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

const (
	// rememberedTokens bounds how many tokens are known without checking their
	// signature again, about 1 KiB each; the longest unused is forgotten.
	rememberedTokens = 8192
	// MaxTokenBytes is the longest token that is looked at.
	MaxTokenBytes = 16 << 10
	// clockLeeway is how far the clocks of servers may differ.
	clockLeeway = time.Minute
)

// Reasons to refuse a token; whoever sent it learns only that it was refused.
var (
	ErrSignature   = errors.New("the signature of the service account token is not of a key of this cluster")
	ErrExpired     = errors.New("service account token has expired")
	ErrNotYet      = errors.New("service account token is not valid yet")
	ErrInvalidated = errors.New("service account token has been invalidated")
	ErrClaims      = errors.New("the claims of the service account token do not fit together")
)

// Authenticator tells whose a token is. It is safe for concurrent use.
type Authenticator struct {
	issuer   *Issuer
	objects  *storage.Store
	verified *lru.Cache // [sha256.Size]byte to verified
	used     chan use   // of tokens in Secrets, for Run
}

var _ authenticator.Token = (*Authenticator)(nil)

// NewAuthenticator accepts the tokens of issuer, as long as what they are bound to
// is in the store.
func NewAuthenticator(issuer *Issuer, objects *storage.Store) *Authenticator {
	return &Authenticator{issuer: issuer, objects: objects, verified: lru.New(rememberedTokens), used: make(chan use, waitingUses)}
}

// AuthenticateToken implements authenticator.Token. Tokens of another issuer are
// left to other authenticators.
func (a *Authenticator) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	if !a.isOurs(token) {
		return nil, false, nil
	}
	c, err := a.verify(token)
	if err != nil {
		return nil, false, err
	}
	audiences, err := a.audiences(ctx, c)
	if err != nil {
		return nil, false, err
	}
	if err := inTime(c, a.objects.Now()); err != nil {
		return nil, false, err
	}
	who, err := a.holder(ctx, token, c)
	if err != nil {
		return nil, false, err
	}
	return &authenticator.Response{User: who.UserInfo(), Audiences: audiences}, true, nil
}

// isOurs looks at what the token says of its issuer, before anything is checked.
func (a *Authenticator) isOurs(token string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > MaxTokenBytes {
		return false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}
	var says struct {
		Issuer string `json:"iss"`
	}
	if err := json.Unmarshal(payload, &says); err != nil {
		return false
	}
	return says.Issuer == a.issuer.name || says.Issuer == legacyIssuer
}

// verified is what a token says, and which key has signed it.
type verified struct {
	claims *claims
	key    string
}

// verify checks the signature, once for each token as long as its key is there.
func (a *Authenticator) verify(token string) (*claims, error) {
	id, keys := sha256.Sum256([]byte(token)), a.issuer.keys()
	if known, ok := a.verified.Get(id); ok && keys.has(known.(verified).key) {
		return known.(verified).claims, nil
	}
	parsed, err := jwt.ParseSigned(token, []jose.SignatureAlgorithm{algorithm})
	if err != nil {
		return nil, ErrSignature
	}
	for _, key := range keys.named(parsed.Headers[0].KeyID) {
		c := &claims{}
		if parsed.Claims(key.Key, c) == nil {
			a.verified.Add(id, verified{c, key.KeyID})
			return c, nil
		}
	}
	return nil, ErrSignature
}

// audiences are those of the token that the request is meant for.
func (a *Authenticator) audiences(ctx context.Context, c *claims) (authenticator.Audiences, error) {
	wanted, ok := authenticator.AudiencesFrom(ctx)
	if !ok {
		wanted = a.issuer.audiences
	}
	has := authenticator.Audiences(c.Audience)
	if len(has) == 0 {
		has = a.issuer.audiences
	}
	common := has.Intersect(wanted)
	if len(common) == 0 {
		return nil, fmt.Errorf("token audiences %q is invalid for the target audiences %q", has, wanted)
	}
	return common, nil
}

func inTime(c *claims, now time.Time) error {
	switch {
	case c.Expiry != nil && now.After(c.Expiry.Time().Add(clockLeeway)):
		return ErrExpired
	case c.NotBefore != nil && now.Add(clockLeeway).Before(c.NotBefore.Time()):
		return ErrNotYet
	}
	return nil
}

// holder is who the claims speak of, if all that they are bound to is still there.
func (a *Authenticator) holder(ctx context.Context, token string, c *claims) (*serviceaccount.ServiceAccountInfo, error) {
	switch {
	case c.Issuer == legacyIssuer:
		return a.legacyHolder(ctx, token, c)
	case c.Issuer == a.issuer.name && c.Kubernetes != nil && c.Expiry != nil:
		return a.boundHolder(ctx, c)
	}
	return nil, ErrClaims
}

func (a *Authenticator) boundHolder(ctx context.Context, c *claims) (*serviceaccount.ServiceAccountInfo, error) {
	k := c.Kubernetes
	if c.Subject != serviceaccount.MakeUsername(k.Namespace, k.Account.Name) {
		return nil, ErrClaims
	}
	if err := a.require(ctx, k.requirements()); err != nil {
		return nil, err
	}
	who := &serviceaccount.ServiceAccountInfo{
		Namespace: k.Namespace, Name: k.Account.Name, UID: k.Account.UID, CredentialID: tokenjwt.CredentialIDForJTI(c.ID),
	}
	if k.Pod != nil {
		who.PodName, who.PodUID = k.Pod.Name, k.Pod.UID
	}
	if k.Node != nil {
		who.NodeName, who.NodeUID = k.Node.Name, k.Node.UID
	}
	return who, nil
}
