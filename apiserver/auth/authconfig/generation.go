package authconfig

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"
)

// successLife is how long a token that was good is not checked again, as upstream's.
const successLife = 10 * time.Second

// generation is one configuration, in force or about to be. Nobody changes it.
type generation struct {
	issuers []oidc.AuthenticatorTokenWithHealthCheck
	tokens  authenticator.Token
	// strangers: nil admits all without a name; else only those, at these paths, if any.
	strangers *apiserver.AnonymousAuthConfig
	// cancel ends the asking for keys.
	cancel context.CancelFunc
}

// newGeneration is of a configuration that is valid.
func newGeneration(ctx context.Context, c *apiserver.AuthenticationConfiguration, config Config) (*generation, error) {
	g := &generation{strangers: c.Anonymous}
	ctx, g.cancel = context.WithCancel(ctx)
	all := make([]authenticator.Token, len(c.JWT))
	for i, jwt := range c.JWT {
		issuer, err := newIssuer(ctx, jwt, config)
		if err != nil {
			g.cancel()
			return nil, err
		}
		g.issuers, all[i] = append(g.issuers, issuer), issuer
	}
	g.tokens = authenticator.WrapAudienceAgnosticToken(config.Audiences, union.New(all...))
	if len(all) > 0 {
		g.tokens = cache.New(g.tokens, false, successLife, 0)
	}
	return g, nil
}

func newIssuer(ctx context.Context, jwt apiserver.JWTAuthenticator, config Config) (oidc.AuthenticatorTokenWithHealthCheck, error) {
	options := oidc.Options{
		JWTAuthenticator: jwt, DisallowedIssuers: []string{config.OwnIssuer}, SupportedSigningAlgs: oidc.AllValidSigningAlgorithms(),
		APIServerID: config.Server,
	}
	if ca := jwt.Issuer.CertificateAuthority; ca != "" {
		content, err := dynamiccertificates.NewStaticCAContent("oidc-authenticator", []byte(ca))
		if err != nil {
			return nil, err
		}
		options.CAContentProvider = content
	}
	return oidc.New(ctx, options)
}

// unhealthy says which issuers have not answered yet.
func (g *generation) unhealthy() error {
	var errs []error
	for _, issuer := range g.issuers {
		errs = append(errs, issuer.HealthCheck())
	}
	return errors.Join(errs...)
}

func (g *generation) admitsAnonymous(path string) bool {
	if g.strangers == nil {
		return true
	}
	return g.strangers.Enabled && (len(g.strangers.Conditions) == 0 ||
		slices.Contains(g.strangers.Conditions, apiserver.AnonymousAuthCondition{Path: path}))
}

func byClaim(a, b apiserver.ClaimValidationRule) int { return cmp.Compare(a.Claim, b.Claim) }
