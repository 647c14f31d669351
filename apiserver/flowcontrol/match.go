package flowcontrol

import (
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// matches reports whether any rule of a schema is about the request.
func matches(schema *flowcontrolv1.FlowSchema, who user.Info, info *request.RequestInfo) bool {
	for i := range schema.Spec.Rules {
		rule := &schema.Spec.Rules[i]
		if concerns(rule, info) && anyIs(rule.Subjects, who) {
			return true
		}
	}
	return false
}

func anyIs(subjects []flowcontrolv1.Subject, who user.Info) bool {
	for i := range subjects {
		if is(&subjects[i], who) {
			return true
		}
	}
	return false
}

func is(s *flowcontrolv1.Subject, who user.Info) bool {
	switch {
	case s.User != nil:
		return s.User.Name == flowcontrolv1.NameAll || s.User.Name == who.GetName()
	case s.Group != nil:
		return s.Group.Name == flowcontrolv1.NameAll || slices.Contains(who.GetGroups(), s.Group.Name)
	case s.ServiceAccount != nil:
		account := s.ServiceAccount
		if account.Name == flowcontrolv1.NameAll {
			return strings.HasPrefix(
				who.GetName(),
				serviceaccount.ServiceAccountUsernamePrefix+account.Namespace+serviceaccount.ServiceAccountUsernameSeparator,
			)
		}
		return serviceaccount.MatchesUsername(account.Namespace, account.Name, who.GetName())
	default:
		return false
	}
}

func concerns(rule *flowcontrolv1.PolicyRulesWithSubjects, info *request.RequestInfo) bool {
	if info.IsResourceRequest {
		for i := range rule.ResourceRules {
			if concernsResource(&rule.ResourceRules[i], info) {
				return true
			}
		}
		return false
	}
	for i := range rule.NonResourceRules {
		r := &rule.NonResourceRules[i]
		if has(r.Verbs, info.Verb, flowcontrolv1.VerbAll) && hasPath(r.NonResourceURLs, info.Path) {
			return true
		}
	}
	return false
}

func concernsResource(rule *flowcontrolv1.ResourcePolicyRule, info *request.RequestInfo) bool {
	if !has(rule.Verbs, info.Verb, flowcontrolv1.VerbAll) || !has(rule.APIGroups, info.APIGroup, flowcontrolv1.APIGroupAll) {
		return false
	}
	resource := info.Resource
	if info.Subresource != "" {
		resource += "/" + info.Subresource
	}
	if !has(rule.Resources, resource, flowcontrolv1.ResourceAll) {
		return false
	}
	if info.Namespace == "" {
		return rule.ClusterScope
	}
	return has(rule.Namespaces, info.Namespace, flowcontrolv1.NamespaceEvery)
}

func has(list []string, one, all string) bool {
	return slices.Contains(list, one) || slices.Contains(list, all)
}

// hasPath: a path of a rule may end with a star.
func hasPath(paths []string, asked string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		prefix, open := strings.CutSuffix(p, "*")
		return p == asked || open && strings.HasPrefix(asked, prefix)
	})
}

// flowOf tells the requests of one schema apart.
func flowOf(schema *flowcontrolv1.FlowSchema, who user.Info, info *request.RequestInfo) string {
	method := schema.Spec.DistinguisherMethod
	switch {
	case method == nil:
		return ""
	case method.Type == flowcontrolv1.FlowDistinguisherMethodByUserType:
		return who.GetName()
	default:
		return info.Namespace
	}
}

// tenant is whose flow it is: all service accounts of a namespace are one tenant, however many a user makes of them.
func (k flowKey) tenant() flowKey {
	const separator = serviceaccount.ServiceAccountUsernameSeparator
	if strings.HasPrefix(k.distinguisher, serviceaccount.ServiceAccountUsernamePrefix) {
		k.distinguisher = k.distinguisher[:strings.LastIndex(k.distinguisher, separator)]
	}
	return k
}
