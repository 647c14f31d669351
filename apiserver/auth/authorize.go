package auth

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
)

// Config of an authorizer.
type Config struct {
	// PodNode returns the node a pod is bound to ("": to none); found is false when there
	// is no such pod. With it, nodes are confined to their own pods; without, to pods.
	PodNode func(ctx context.Context, namespace, name string) (node string, found bool)
	// Next judges what the fixed rules do not allow (RBAC). Without it that is refused.
	Next authorizer.Authorizer
}

// NewAuthorizer returns the fixed rules: administrators (system:masters) and servers may do
// everything, nodes what their work needs, everyone authenticated may discover the API and
// ask about himself. An answer takes well under a microsecond unless PodNode is asked.
func NewAuthorizer(config Config) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetUser() == nil {
			return authorizer.DecisionNoOpinion, "no user on request", nil
		}
		reason := ""
		for _, rule := range rules {
			decision, why := rule(ctx, config, a)
			if decision != authorizer.DecisionNoOpinion {
				return decision, why, nil
			}
			if why != "" {
				reason = why
			}
		}
		if config.Next != nil {
			return config.Next.Authorize(ctx, a)
		}
		return authorizer.DecisionNoOpinion, reason, nil
	})
}

type rule func(ctx context.Context, config Config, a authorizer.Attributes) (authorizer.Decision, string)

// rules are asked in this order; the first that has an opinion decides.
var rules = []rule{superusers, nodes, everyone}

func superusers(_ context.Context, _ Config, a authorizer.Attributes) (authorizer.Decision, string) {
	groups := a.GetUser().GetGroups()
	if slices.Contains(groups, pki.GroupMasters) || slices.Contains(groups, pki.GroupServers) {
		return authorizer.DecisionAllow, ""
	}
	return authorizer.DecisionNoOpinion, ""
}

// openPaths are the non-resource paths that every authenticated user may read; a trailing
// slash stands for everything below.
var openPaths = []string{
	"/api", "/api/", "/apis", "/apis/", "/openapi", "/openapi/", "/version", "/version/",
	"/healthz", "/healthz/", "/livez", "/livez/", "/readyz", "/readyz/",
}

// selfReviews are the questions about oneself.
var selfReviews = map[string]string{
	"selfsubjectaccessreviews": "authorization.k8s.io",
	"selfsubjectrulesreviews":  "authorization.k8s.io",
	"selfsubjectreviews":       "authentication.k8s.io",
}

func everyone(_ context.Context, _ Config, a authorizer.Attributes) (authorizer.Decision, string) {
	if !a.IsResourceRequest() {
		return everyonePath(a)
	}
	authenticated := slices.Contains(a.GetUser().GetGroups(), user.AllAuthenticated)
	if group, ok := selfReviews[a.GetResource()]; ok && authenticated && group == a.GetAPIGroup() && a.GetVerb() == "create" {
		return authorizer.DecisionAllow, ""
	}
	return authorizer.DecisionNoOpinion, ""
}

func everyonePath(a authorizer.Attributes) (authorizer.Decision, string) {
	if a.GetVerb() != "get" && a.GetVerb() != "head" {
		return authorizer.DecisionNoOpinion, ""
	}
	path := a.GetPath()
	authenticated := slices.Contains(a.GetUser().GetGroups(), user.AllAuthenticated)
	if !authenticated && !isAnonymousPath(path) {
		return authorizer.DecisionNoOpinion, ""
	}
	for _, open := range openPaths {
		if path == open || strings.HasSuffix(open, "/") && strings.HasPrefix(path, open) {
			return authorizer.DecisionAllow, ""
		}
	}
	return authorizer.DecisionNoOpinion, ""
}
