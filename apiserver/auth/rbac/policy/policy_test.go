package policy

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestBindingsHoldRoles: each binding names a role that is in the tables, and each
// object is there once and marked.
func TestBindingsHoldRoles(t *testing.T) {
	seen := map[string]bool{}
	see := func(kind string, o interface {
		GetName() string
		GetNamespace() string
		GetLabels() map[string]string
		GetAnnotations() map[string]string
	}) {
		key := kind + " " + o.GetNamespace() + "/" + o.GetName()
		if seen[key] {
			t.Errorf("%s is there twice", key)
		}
		seen[key] = true
		if o.GetLabels()[labelKey] != labelValue || o.GetAnnotations()[rbacv1.AutoUpdateAnnotationKey] != "true" {
			t.Errorf("%s is not marked", key)
		}
	}
	for _, r := range ClusterRoles() {
		see("ClusterRole", r)
		if (len(r.Rules) == 0) != (r.AggregationRule != nil) {
			t.Errorf("%s has rules and gathers them, or neither", r.Name)
		}
	}
	for _, r := range Roles() {
		see("Role", r)
	}
	for _, b := range ClusterRoleBindings() {
		see("ClusterRoleBinding", b)
		if !seen["ClusterRole /"+b.RoleRef.Name] {
			t.Errorf("%s binds %s, which is not there", b.Name, b.RoleRef.Name)
		}
	}
	for _, b := range RoleBindings() {
		see("RoleBinding", b)
		if !seen["Role "+b.Namespace+"/"+b.RoleRef.Name] {
			t.Errorf("%s binds %s, which is not there", b.Name, b.RoleRef.Name)
		}
	}
}

// TestNamespacedNames: they are upstream's, each bound in its own namespace.
func TestNamespacedNames(t *testing.T) {
	want := []string{
		"kube-public/system:controller:bootstrap-signer",
		"kube-system/extension-apiserver-authentication-reader",
		"kube-system/system::leader-locking-kube-controller-manager",
		"kube-system/system::leader-locking-kube-scheduler",
		"kube-system/system:controller:bootstrap-signer",
		"kube-system/system:controller:cloud-provider",
		"kube-system/system:controller:token-cleaner",
	}
	var roles, bound []string
	for _, r := range Roles() {
		roles = append(roles, r.Namespace+"/"+r.Name)
	}
	for _, b := range RoleBindings() {
		bound = append(bound, b.Namespace+"/"+b.RoleRef.Name)
	}
	slices.Sort(roles)
	slices.Sort(bound)
	if diff := cmp.Diff(want, roles) + cmp.Diff(want, bound); diff != "" {
		t.Error(diff)
	}
}

// TestTheLadder: who may less must not read secrets, and nobody below the
// cluster's administrator changes quotas.
func TestTheLadder(t *testing.T) {
	grants := func(rules []rbacv1.PolicyRule, verb, resource string) bool {
		for _, r := range rules {
			for _, v := range r.Verbs {
				for _, s := range r.Resources {
					if v == verb && s == resource {
						return true
					}
				}
			}
		}
		return false
	}
	for _, c := range []struct {
		rules          []rbacv1.PolicyRule
		verb, resource string
		granted        bool
	}{
		{viewing(), "get", "pods", true},
		{viewing(), "get", "secrets", false},
		{viewing(), "create", "pods", false},
		{viewing(), "get", "roles", false},
		{editing(), "get", "secrets", true},
		{editing(), "create", "pods/exec", true},
		{editing(), "update", "resourcequotas", false},
		{editing(), "update", "roles", false},
		{editing(), "update", "pods/status", false},
	} {
		if grants(c.rules, c.verb, c.resource) != c.granted {
			t.Errorf("%s %s: granted %v", c.verb, c.resource, !c.granted)
		}
	}
}

// TestRulesAreSorted: tools that compare two clusters see the order of the words.
func TestRulesAreSorted(t *testing.T) {
	check := func(name string, rules []rbacv1.PolicyRule) {
		for _, r := range rules {
			for _, list := range [][]string{r.Verbs, r.APIGroups, r.Resources, r.ResourceNames, r.NonResourceURLs} {
				if !slices.IsSorted(list) {
					t.Errorf("%s: %v is not sorted", name, list)
				}
			}
		}
	}
	for _, r := range ClusterRoles() {
		check(r.Name, r.Rules)
	}
	for _, r := range Roles() {
		check(r.Name, r.Rules)
	}
}

// TestWhatPartsMayRead: trust bundles are for every service account, taint rules for
// upstream's scheduler, pages about a program for monitors; leaders agree by Leases alone.
func TestWhatPartsMayRead(t *testing.T) {
	clusterRules := func(name string) []rbacv1.PolicyRule {
		at := slices.IndexFunc(ClusterRoles(), func(r *rbacv1.ClusterRole) bool { return r.Name == name })
		if at < 0 {
			t.Fatalf("%s is not there", name)
		}
		return ClusterRoles()[at].Rules
	}
	has := func(rules []rbacv1.PolicyRule, want string) bool {
		return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Verbs, "get") && (slices.Contains(r.Resources, want) || slices.Contains(r.NonResourceURLs, want))
		})
	}
	for role, wants := range map[string][]string{
		"system:cluster-trust-bundle-discovery": {"clustertrustbundles"},
		"system:kube-scheduler":                 {"devicetaintrules"},
		"system:monitoring":                     {"/statusz", "/flagz"},
	} {
		for _, want := range wants {
			if !has(clusterRules(role), want) {
				t.Errorf("%s may not get %s", role, want)
			}
		}
	}
	for _, r := range Roles() {
		if strings.HasPrefix(r.Name, leaderPrefix) && has(r.Rules, "configmaps") {
			t.Errorf("%s reads ConfigMaps", r.Name)
		}
	}
}
