package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/auth/authconfig"
	"github.com/setpoint-io/setpoint/apiserver/auth/authzconfig"
	"github.com/setpoint-io/setpoint/apiserver/auth/rbac"
	"github.com/setpoint-io/setpoint/apiserver/auth/reviews"
	"github.com/setpoint-io/setpoint/apiserver/auth/tokens"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// Config is what the judges need.
type Config struct {
	Storage *storage.Store
	// Server is the name of this server.
	Server string
	// Authority is the cluster's: it certifies the servers.
	Authority *trust.CA
	// Revoked is told who is shut out, and asked.
	Revoked *revocation.Judge
	// AccountKeys sign the tokens of service accounts.
	AccountKeys *trust.Ring[trust.AccountKey]
	// Authentication configures OIDC issuers and anonymous requests, beside the cluster's own users.
	Authentication authconfig.Config
	// AuthorizationFile is an AuthorizationConfiguration: webhooks beside the cluster's own judges; "": none.
	AuthorizationFile string
	Logger            *slog.Logger
}

// Validate says what is wrong with the flags, and in the files that they name. It asks nobody.
func Validate(authentication authconfig.Config, authorizationFile string) error {
	if own := authentication.OwnIssuer; own != "" {
		if parsed, err := url.Parse(own); err != nil || parsed.Scheme != "https" || parsed.Host == "" {
			return fmt.Errorf("authentication: OwnIssuer %q is no https URL", own)
		}
	}
	authentication.OwnIssuer = ownIssuer(authentication)
	authenticationErr := authentication.Validate()
	if authenticationErr != nil {
		authenticationErr = fmt.Errorf("authentication: %w", authenticationErr)
	}
	if authorizationFile == "" {
		return authenticationErr
	}
	authorizationErr := authzconfig.Validate(authorizationFile)
	if authorizationErr != nil {
		authorizationErr = fmt.Errorf("authorization: %w", authorizationErr)
	}
	return errors.Join(authenticationErr, authorizationErr)
}

// ownIssuer is the name that the cluster's own tokens bear.
func ownIssuer(c authconfig.Config) string { return cmp.Or(c.OwnIssuer, tokens.DefaultIssuer) }

// Access is the authentication and authorization of one server. Its fields can be used when New returns, and
// must not be changed.
type Access struct {
	Issuer        *tokens.Issuer
	Authenticator authenticator.Request
	Authorizer    authorizer.Authorizer
	// NodeKeys are those that Authenticator asks.
	NodeKeys *auth.NodeKeys
	// Escalation refuses roles and bindings that give more than their writer has.
	Escalation *rbac.Escalation
	Reviews    []reviews.Review
	// Documents are those by which others check tokens, by path.
	Documents map[string]http.Handler

	storage    *storage.Store
	revoked    *revocations
	deleted    *storage.Follower // of Nodes
	roles      *rbac.Authorizer
	workloads  *auth.Workloads
	accounts   *tokens.Authenticator
	configured *authconfig.Authentication
	webhooks   *authzconfig.Authorization // nil: none are configured
}

// New makes the judges over the opened storage. They refuse until Run has read it.
func New(ctx context.Context, c Config) (*Access, error) {
	keys, err := followKeys(c.AccountKeys)
	if err != nil {
		return nil, err
	}
	a := &Access{
		storage: c.Storage, NodeKeys: auth.NewNodeKeys(c.Storage), Issuer: tokens.NewIssuer(keys, ownIssuer(c.Authentication)),
		roles: rbac.New(c.Storage, c.Logger), workloads: auth.NewWorkloads(c.Storage, c.Logger),
	}
	a.revoked = followRevocations(c.Storage, c.Revoked, c.Logger)
	a.deleted = followDeletedNodes(c.Storage, c.Revoked, c.Logger)
	if a.Documents, err = a.Issuer.Documents(); err != nil {
		return nil, err
	}
	config := c.Authentication
	config.OwnIssuer, config.Audiences, config.Logger, config.Server = a.Issuer.Name(), a.Issuer.Audiences(), c.Logger, c.Server
	if a.configured, err = authconfig.New(ctx, config); err != nil {
		return nil, fmt.Errorf("authentication: %w", err)
	}
	a.accounts = tokens.NewAuthenticator(a.Issuer, c.Storage)
	bearer := auth.JudgedTokens(c.Revoked, auth.NewTokens(a.accounts, auth.NewBootstrapTokens(c.Storage), a.configured))
	a.Authenticator = auth.NewJudgedAuthenticator(
		c.Storage.Now, c.Revoked, a.NodeKeys, c.Authority.IsServer, a.configured.AdmitsAnonymous, auth.Bearer(bearer),
	)
	a.Authorizer = auth.NewAuthorizer(auth.Config{Workloads: a.workloads, Next: a.roles, CatchUp: a.catchUp})
	rules, err := a.askWebhooks(c)
	if err != nil {
		return nil, err
	}
	a.Escalation = rbac.NewEscalation(a.roles, a.Authorizer)
	a.Reviews = reviews.New(reviews.Config{
		Authorizer: a.Authorizer, Rules: rules, CatchUp: a.catchUp, Tokens: bearer, Audiences: a.Issuer.Audiences(),
	})
	return a, nil
}

// askWebhooks puts webhooks beside the cluster's own judges, if there are some, and returns who lists what is allowed.
func (a *Access) askWebhooks(c Config) (authorizer.RuleResolver, error) {
	if c.AuthorizationFile == "" {
		return a.roles, nil
	}
	webhooks, err := authzconfig.New(authzconfig.Config{
		File: c.AuthorizationFile, Own: a.Authorizer, Rules: a.roles,
		Privileged: []string{trust.GroupMasters, trust.GroupServers}, Logger: c.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("authorization: %w", err)
	}
	a.webhooks, a.Authorizer = webhooks, webhooks
	return webhooks, nil
}

// OfGateways says how to find out what Gateways that nodes serve name; see auth.Workloads.
func (a *Access) OfGateways(named func(resource, namespace, name string) bool) {
	a.workloads.OfGateways(named)
}

// Run keeps what the judges know up to date until ctx ends.
func (a *Access) Run(ctx context.Context) {
	var wg sync.WaitGroup
	wg.Go(func() { a.roles.Run(ctx) })
	wg.Go(func() { a.revoked.run(ctx) })
	wg.Go(func() { a.deleted.Run(ctx) })
	wg.Go(func() { a.workloads.Run(ctx) })
	wg.Go(func() { a.configured.Run(ctx) })
	wg.Go(func() { a.accounts.Run(ctx) })
	if a.webhooks != nil {
		wg.Go(func() { a.webhooks.Run(ctx) })
	}
	wg.Wait()
}

// catchUp waits until the judges know what was written in the cluster before the call.
func (a *Access) catchUp(ctx context.Context) error {
	revision, err := a.storage.LinearizableRevision(ctx)
	if err != nil {
		return err
	}
	if err := a.roles.CatchUp(ctx, revision); err != nil {
		return err
	}
	return a.workloads.CatchUp(ctx, revision)
}
