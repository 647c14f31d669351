package setpoint

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/auth/authconfig"
	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
	"github.com/setpoint-io/setpoint/apiserver/auth/rbac"
	"github.com/setpoint-io/setpoint/apiserver/auth/reviews"
	"github.com/setpoint-io/setpoint/apiserver/auth/tokens"
)

// access is who may in, and who may what.
type access struct {
	server        *Server
	issuer        *tokens.Issuer
	roles         *rbac.Authorizer
	workloads     *auth.Workloads
	configured    *authconfig.Authentication
	authenticator authenticator.Request
	authorizer    authorizer.Authorizer
	escalation    *rbac.Escalation
	reviews       []reviews.Review
	// documents are those by which others check tokens, by path.
	documents map[string]http.Handler
}

// newAccess makes the judges over the opened storage. They refuse until run has
// read it.
func (s *Server) newAccess(ctx context.Context, self pki.Server) (*access, error) {
	keys, err := tokens.NewKeys(s.config.Trust.AccountKey)
	if err != nil {
		return nil, err
	}
	a := &access{
		server: s, issuer: tokens.NewIssuer(keys, tokens.DefaultIssuer),
		roles: rbac.New(s.storage, s.config.Logger), workloads: auth.NewWorkloads(s.storage, s.config.Logger),
	}
	if a.documents, err = a.issuer.Documents(self.Endpoint); err != nil {
		return nil, err
	}
	config := s.config.Authentication
	config.OwnIssuer, config.Audiences, config.Logger = a.issuer.Name(), a.issuer.Audiences(), s.config.Logger
	if a.configured, err = authconfig.New(ctx, config); err != nil {
		return nil, fmt.Errorf("authentication: %w", err)
	}
	bearer := auth.NewTokens(tokens.NewAuthenticator(a.issuer, s.storage), auth.NewBootstrapTokens(s.storage), a.configured)
	a.authenticator = auth.NewAuthenticator(a.configured.AdmitsAnonymous, auth.Bearer(bearer))
	a.authorizer = auth.NewAuthorizer(auth.Config{Workloads: a.workloads, Next: a.roles, CatchUp: a.catchUp})
	a.escalation = rbac.NewEscalation(a.roles, a.authorizer)
	a.reviews = reviews.New(reviews.Config{
		Authorizer: a.authorizer, Rules: a.roles, CatchUp: a.catchUp, Tokens: bearer, Audiences: a.issuer.Audiences(),
	})
	return a, nil
}

// run keeps what the judges know up to date until ctx ends.
func (a *access) run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { a.roles.Run(ctx) })
	wg.Go(func() { a.workloads.Run(ctx) })
	wg.Go(func() { a.configured.Run(ctx) })
	wg.Wait()
}

// catchUp waits until the judges know what was written in the cluster before the call.
func (a *access) catchUp(ctx context.Context) error {
	revision, err := a.server.storage.LinearizableRevision(ctx)
	if err != nil {
		return err
	}
	if err := a.roles.CatchUp(ctx, revision); err != nil {
		return err
	}
	return a.workloads.CatchUp(ctx, revision)
}
