package authzconfig

import (
	"context"
	"crypto/sha256"
	"fmt"
	"log/slog"
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

	"github.com/setpoint-io/setpoint/internal/reread"
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
	file     *reread.Follower // only Run uses it after New
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
	text, err := readAll(config.File)
	if err != nil {
		return nil, err
	}
	first, err := a.judge(text)
	if err != nil {
		return nil, err
	}
	a.current.Store(first)
	a.file = reread.New(reread.Config{
		Every: reloadInterval, Read: func() ([]byte, error) { return readAll(config.File) }, Judge: a.next,
		Warning: "the authorization configuration was not taken; the former one stays in force", Logger: config.Logger,
	}, text)
	return a, nil
}

// Validate says what is wrong with the file, and with those that it names.
func Validate(file string) error {
	nobody := authorizerfactory.NewAlwaysDenyAuthorizer()
	_, err := New(Config{File: file, Own: nobody, Rules: nobody, Logger: slog.New(slog.DiscardHandler)})
	return err
}

// RulesFor implements authorizer.RuleResolver: what a webhook allows is in no list, and the answer says so.
func (a *Authorization) RulesFor(ctx context.Context, who user.Info, namespace string) (
	[]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error,
) {
	return a.current.Load().rules.RulesFor(ctx, who, namespace)
}

// Run reads the file again and again, until ctx ends.
func (a *Authorization) Run(ctx context.Context) { a.file.Run(ctx) }

func (a *Authorization) next(_ context.Context, text []byte) (reread.Next, error) {
	next, err := a.judge(text)
	return reread.Next{Apply: func(context.Context) error {
		a.current.Store(next)
		a.config.Logger.Info("the authorization configuration has changed", "file", a.config.File)
		return nil
	}}, err
}

// judge makes what a text of readAll says.
func (a *Authorization) judge(text []byte) (*generation, error) {
	c, err := parse(text[sha256.Size:], a.compiler)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.config.File, err)
	}
	next, err := a.build(c)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", a.config.File, err)
	}
	return next, nil
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
