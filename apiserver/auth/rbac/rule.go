package rbac

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// question is what a request wants, in the words of rules.
type question struct {
	verb string
	// forPath: the request is for no resource but for path.
	forPath bool
	path    string
	// group, resource and name of the object; resource is "pods/log" for a
	// subresource, and anySubresource "*/log" then.
	group, resource, anySubresource, name string
}

func questionOf(a authorizer.Attributes) question {
	if !a.IsResourceRequest() {
		return question{verb: a.GetVerb(), forPath: true, path: a.GetPath()}
	}
	q := question{verb: a.GetVerb(), group: a.GetAPIGroup(), resource: a.GetResource(), name: a.GetName()}
	if sub := a.GetSubresource(); sub != "" {
		q.resource += "/" + sub
		q.anySubresource = "*/" + sub
	}
	return q
}

// allows reports whether one rule grants what is asked.
func allows(rule *rbacv1.PolicyRule, q *question) bool {
	if !has(rule.Verbs, q.verb) {
		return false
	}
	if q.forPath {
		return slices.ContainsFunc(rule.NonResourceURLs, func(pattern string) bool { return matchesPath(pattern, q.path) })
	}
	return has(rule.APIGroups, q.group) && hasResource(rule.Resources, q) &&
		(len(rule.ResourceNames) == 0 || slices.Contains(rule.ResourceNames, q.name))
}

func has(list []string, wanted string) bool {
	for _, s := range list {
		if s == "*" || s == wanted {
			return true
		}
	}
	return false
}

func hasResource(list []string, q *question) bool {
	for _, s := range list {
		if s == "*" || s == q.resource || q.anySubresource != "" && s == q.anySubresource {
			return true
		}
	}
	return false
}

// matchesPath: a pattern may end in a star.
func matchesPath(pattern, path string) bool {
	if start, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(path, start)
	}
	return pattern == path
}
