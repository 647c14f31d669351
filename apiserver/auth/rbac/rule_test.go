package rbac

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestRules(t *testing.T) {
	pods := rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"pods", "pods/log"}}
	named := rbacv1.PolicyRule{Verbs: []string{"update"}, APIGroups: []string{"apps"}, Resources: []string{"deployments"}, ResourceNames: []string{"web"}}
	scales := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*/scale"}}
	all := rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}
	urls := rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/api", "/apis/*"}}
	everyURL := rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}
	resource := func(verb, group, resource, subresource, name string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{Verb: verb, APIGroup: group, Resource: resource, Subresource: subresource, Name: name, ResourceRequest: true}
	}
	path := func(verb, path string) authorizer.AttributesRecord {
		return authorizer.AttributesRecord{Verb: verb, Path: path}
	}
	for name, c := range map[string]struct {
		rule    rbacv1.PolicyRule
		request authorizer.AttributesRecord
		allowed bool
	}{
		"a verb of the rule":            {pods, resource("get", "", "pods", "", "a"), true},
		"another verb":                  {pods, resource("watch", "", "pods", "", "a"), false},
		"another group":                 {pods, resource("get", "metrics.k8s.io", "pods", "", "a"), false},
		"a subresource of the rule":     {pods, resource("get", "", "pods", "log", "a"), true},
		"another subresource":           {pods, resource("get", "", "pods", "exec", "a"), false},
		"the name of the rule":          {named, resource("update", "apps", "deployments", "", "web"), true},
		"another name":                  {named, resource("update", "apps", "deployments", "", "db"), false},
		"no name":                       {named, resource("update", "apps", "deployments", "", ""), false},
		"any resource's subresource":    {scales, resource("patch", "apps", "deployments", "scale", "web"), true},
		"not the resource itself":       {scales, resource("patch", "apps", "deployments", "", "web"), false},
		"not another subresource":       {scales, resource("patch", "apps", "deployments", "status", "web"), false},
		"all":                           {all, resource("escalate", "x.example", "things", "status", "a"), true},
		"all resources are no paths":    {all, path("get", "/metrics"), false},
		"a path":                        {urls, path("get", "/api"), true},
		"not below a path":              {urls, path("get", "/api/v1"), false},
		"below a starred path":          {urls, path("get", "/apis/apps/v1"), true},
		"not beside a starred path":     {urls, path("get", "/apisecret"), false},
		"paths are no resources":        {urls, resource("get", "", "", "", ""), false},
		"every path":                    {everyURL, path("post", "/x"), true},
		"every path is not a resource":  {everyURL, resource("get", "", "pods", "", "a"), false},
		"a resource request for no one": {all, resource("get", "", "", "", ""), true},
	} {
		t.Run(name, func(t *testing.T) {
			q := questionOf(c.request)
			if allows(&c.rule, &q) != c.allowed {
				t.Errorf("allowed %v", !c.allowed)
			}
		})
	}
}
