package authzconfig

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/pkg/authorization/union"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
)

const (
	// reloadInterval is how often the file is read again.
	reloadInterval = 10 * time.Second
	// firstRetryDelay is how long a webhook that failed is waited for before it is asked again, as upstream.
	firstRetryDelay = 500 * time.Millisecond
)

// Config says who is asked.
type Config struct {
	// File is an AuthorizationConfiguration.
	File string
	// Own is the cluster's own authorizer: Node and RBAC. Rules says what it allows.
	Own   authorizer.Authorizer
	Rules authorizer.RuleResolver
	// Privileged are the groups that ask nobody.
	Privileged []string
	Logger     *slog.Logger
}

// Authorization answers for the configuration in force. It is safe for concurrent use.
type Authorization struct {
	authorizer.AuthorizerFunc
	config   Config
	compiler cel.Compiler
	current  atomic.Pointer[generation]

	// What only Run uses after New:
	text []byte // of the file as it was read last
	told string // what was last warned of
}

// generation is one configuration in force. Nobody changes it.
type generation struct {
	authorizer authorizer.Authorizer
	rules      authorizer.RuleResolver
}

// New reads the configuration. It calls no webhook.
func New(config Config) (*Authorization, error) {
	a := &Authorization{config: config, compiler: cel.NewDefaultCompiler()}
	a.AuthorizerFunc = func(ctx context.Context, asked authorizer.Attributes) (authorizer.Decision, string, error) {
		return a.current.Load().authorizer.Authorize(ctx, asked)
	}
	text, err := os.ReadFile(a.config.File)
	if err != nil {
		return nil, err
	}
	return a, a.take(text)
}

// RulesFor implements authorizer.RuleResolver: what a webhook allows is in no list, and the answer says so.
func (a *Authorization) RulesFor(ctx context.Context, who user.Info, namespace string) (
	[]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error,
) {
	return a.current.Load().rules.RulesFor(ctx, who, namespace)
}

// Run reads the file again and again, until ctx ends.
func (a *Authorization) Run(ctx context.Context) {
	ticker := time.NewTicker(reloadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			a.warn(a.reload())
		}
	}
}

func (a *Authorization) reload() error {
	text, err := os.ReadFile(a.config.File)
	if err != nil || bytes.Equal(text, a.text) {
		return err
	}
	if err := a.take(text); err != nil {
		return err
	}
	a.config.Logger.Info("the authorization configuration has changed", "file", a.config.File)
	return nil
}

// take puts the configuration in force that the text says.
func (a *Authorization) take(text []byte) error {
	c, err := parse(text, a.compiler)
	if err != nil {
		return fmt.Errorf("%s: %w", a.config.File, err)
	}
	next, err := a.build(c)
	if err != nil {
		return fmt.Errorf("%s: %w", a.config.File, err)
	}
	a.text = text
	a.current.Store(next)
	return nil
}

// build makes the chain: whoever asks nobody, then the webhooks and the cluster's own judge in the order of the file.
func (a *Authorization) build(c *apiserver.AuthorizationConfiguration) (*generation, error) {
	chain := []union.NamedAuthorizer{{
		AuthorizerName: "kubernetes.io/system-privileged-group", Authorizer: authorizerfactory.NewPrivilegedGroups(a.config.Privileged...),
	}}
	var rules []authorizer.RuleResolver
	for _, one := range c.Authorizers {
		switch one.Type {
		case node: // RBAC is right behind it, and both are the cluster's own
			chain = append(chain, union.NamedAuthorizer{AuthorizerName: "rbac", Authorizer: a.config.Own})
			rules = append(rules, a.config.Rules)
		case apiserver.TypeWebhook:
			hook, err := a.newWebhook(one)
			if err != nil {
				return nil, fmt.Errorf("authorizer %s: %w", one.Name, err)
			}
			chain = append(chain, union.NamedAuthorizer{AuthorizerName: one.Name, Authorizer: hook})
			rules = append(rules, hook)
		}
	}
	joined, err := union.New(chain...)
	return &generation{joined, union.NewRuleResolvers(rules...)}, err
}

func (a *Authorization) newWebhook(c apiserver.AuthorizerConfiguration) (*webhook.WebhookAuthorizer, error) {
	client, err := webhookutil.LoadKubeconfig(*c.Webhook.ConnectionInfo.KubeConfigFile, nil)
	if err != nil {
		return nil, err
	}
	if c.Webhook.Timeout.Duration != 0 {
		client.Timeout = c.Webhook.Timeout.Duration
	}
	onError := authorizer.DecisionNoOpinion
	if c.Webhook.FailurePolicy == apiserver.FailurePolicyDeny {
		onError = authorizer.DecisionDeny
	}
	return webhook.New(client, c.Webhook.SubjectAccessReviewVersion,
		kept(c.Webhook.AuthorizedTTL.Duration, c.Webhook.CacheAuthorizedRequests),
		kept(c.Webhook.UnauthorizedTTL.Duration, c.Webhook.CacheUnauthorizedRequests),
		webhookutil.DefaultRetryBackoffWithInitialDelay(firstRetryDelay), onError,
		c.Webhook.MatchConditions, c.Name,
		measures{metrics.NoopRequestMetrics{}, metrics.NewWebhookMetrics(), cel.NewMatcherMetrics()}, a.compiler)
}

// measures are those that upstream's API server keeps of webhooks.
type measures struct {
	metrics.RequestMetrics
	metrics.WebhookMetrics
	cel.MatcherMetrics
}

// kept is for how long an answer is used again.
func kept(ttl time.Duration, used bool) time.Duration {
	if used {
		return ttl
	}
	return 0
}

// warn says the same only once, until nothing is wrong.
func (a *Authorization) warn(err error) {
	if err == nil {
		a.told = ""
		return
	}
	if told := err.Error(); told != a.told {
		a.told = told
		a.config.Logger.Warn("the authorization configuration was not taken; the former one stays in force", "err", err)
	}
}
