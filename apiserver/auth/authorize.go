package auth

import (
	"context"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// Config of an authorizer.
type Config struct {
	// Workloads knows what runs on which node. Without it, nodes read no secrets and
	// change no pods.
	Workloads *Workloads
	// Next judges what the fixed rules do not allow (RBAC). Without it that is refused.
	Next authorizer.UnconditionalAuthorizer
	// CatchUp waits until Workloads and Next know all that was written in the cluster
	// before the call. It is called before anything is refused. May be nil.
	CatchUp func(ctx context.Context) error
}

// NewAuthorizer returns the judge of all requests: administrators (system:masters) and
// servers may do everything, nodes what their work needs, everybody may ask for health;
// all else is for Config.Next. What is allowed is answered from what this replica knows;
// before it refuses, it catches up with the others.
func NewAuthorizer(config Config) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetUser() == nil {
			return authorizer.DecisionNoOpinion, "no user on request", nil
		}
		decision, reason, err := config.judge(ctx, a)
		if decision != authorizer.DecisionNoOpinion || !config.catchUp(ctx, a) {
			return decision, reason, err
		}
		return config.judge(ctx, a)
	})
}

// catchUpTimeout bounds how long a refusal waits for the others: a replica that lost
// them refuses what it does not know to be allowed.
const catchUpTimeout = 2 * time.Second

// catchUp reports whether it is worth to judge again. The anonymous user waits for
// nobody: anybody could make a server wait.
func (c Config) catchUp(ctx context.Context, a authorizer.Attributes) bool {
	if c.CatchUp == nil || a.GetUser().GetName() == user.Anonymous {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, catchUpTimeout)
	defer cancel()
	return c.CatchUp(ctx) == nil
}

func (c Config) judge(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if superuser(a.GetUser()) || asksHealth(a) {
		return authorizer.DecisionAllow, "", nil
	}
	decision, reason := nodes(c.Workloads, a)
	if decision != authorizer.DecisionNoOpinion || c.Next == nil {
		return decision, reason, nil
	}
	decision, why, err := c.Next.Authorize(ctx, a)
	if why == "" {
		why = reason
	}
	return decision, why, err
}

func superuser(who user.Info) bool {
	groups := who.GetGroups()
	return slices.Contains(groups, trust.GroupMasters) || slices.Contains(groups, trust.GroupServers)
}

// healthPaths are open to everybody, also while the roles cannot be read.
var healthPaths = []string{"/healthz", "/livez", "/readyz"}

func asksHealth(a authorizer.Attributes) bool {
	return !a.IsResourceRequest() && a.GetVerb() == "get" && slices.Contains(healthPaths, a.GetPath())
}
