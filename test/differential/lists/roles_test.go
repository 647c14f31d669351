package lists

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/apiserver/auth/rbac/policy"
)

// policyData is where upstream writes down the roles and bindings of every cluster.
const policyData = "plugin/pkg/auth/authorizer/rbac/bootstrappolicy/testdata"

// stored is a role or a binding, as far as it is compared.
type stored struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name      string            `json:"name"`
		Namespace string            `json:"namespace"`
		Labels    map[string]string `json:"labels"`
	} `json:"metadata"`
	Rules           []rbacv1.PolicyRule     `json:"rules"`
	AggregationRule *rbacv1.AggregationRule `json:"aggregationRule"`
	RoleRef         rbacv1.RoleRef          `json:"roleRef"`
	Subjects        []rbacv1.Subject        `json:"subjects"`
}

func (s stored) key() string { return s.Kind + " " + s.Metadata.Namespace + "/" + s.Metadata.Name }

// storedIn are the objects of a list of upstream's.
func storedIn(t *testing.T, file string) map[string]stored {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(source(t, "k8s.io/kubernetes"), policyData, file))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Items []stored `json:"items"`
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	objects := map[string]stored{}
	for _, s := range list.Items {
		objects[s.key()] = s
	}
	return objects
}

// upstreamRoles are the roles and bindings of a cluster with the default features.
func upstreamRoles(t *testing.T) map[string]stored {
	t.Helper()
	all := map[string]stored{}
	for _, file := range []string{
		"cluster-roles.yaml", "cluster-role-bindings.yaml", "controller-roles.yaml", "controller-role-bindings.yaml",
		"namespace-roles.yaml", "namespace-role-bindings.yaml",
	} {
		for key, s := range storedIn(t, file) {
			all[key] = s
		}
	}
	return all
}

// ourRoles are what every cluster of ours has, in the same form.
func ourRoles(t *testing.T) map[string]stored {
	t.Helper()
	all := map[string]stored{}
	add := func(kind string, obj any) {
		text, err := yaml.Marshal(obj)
		if err != nil {
			t.Fatal(err)
		}
		var s stored
		if err := yaml.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		s.Kind = kind
		all[s.key()] = s
	}
	for _, r := range policy.ClusterRoles() {
		add("ClusterRole", r)
	}
	for _, r := range policy.Roles() {
		add("Role", r)
	}
	for _, b := range policy.ClusterRoleBindings() {
		add("ClusterRoleBinding", b)
	}
	for _, b := range policy.RoleBindings() {
		add("RoleBinding", b)
	}
	return all
}

// TestRoles: the roles of every cluster allow what upstream's do and no more, and are bound to the same users. What differs stands in
// differs, with the reason.
func TestRoles(t *testing.T) {
	upstream, ours := upstreamRoles(t), ourRoles(t)
	if len(upstream) < 100 {
		t.Fatalf("upstream has %d roles and bindings", len(upstream))
	}
	found := map[string]bool{}
	for key, theirs := range upstream {
		if says := difference(theirs, ours[key]); says != "" && differs[key] == "" {
			t.Errorf("%s: %s", key, says)
		} else if says != "" {
			found[key] = true
		}
		delete(ours, key)
	}
	for key := range ours {
		if found[key] = true; differs[key] == "" {
			t.Errorf("%s: upstream has none", key)
		}
	}
	for key := range differs {
		if !found[key] {
			t.Errorf("%s is as upstream's", key)
		}
	}
}

// difference says in what an object of ours is not upstream's.
func difference(theirs, ours stored) string {
	if ours.Kind == "" {
		return "is not here"
	}
	if more, missing := uncovered(theirs.Rules, ours.Rules), uncovered(ours.Rules, theirs.Rules); len(more)+len(missing) > 0 {
		return fmt.Sprintf("allows more: %v, and does not allow: %v", more, missing)
	}
	for name, pair := range map[string][2]any{
		"labels": {theirs.Metadata.Labels, ours.Metadata.Labels}, "aggregation": {theirs.AggregationRule, ours.AggregationRule},
		"role": {theirs.RoleRef, ours.RoleRef}, "subjects": {sorted(theirs.Subjects), sorted(ours.Subjects)},
	} {
		if a, b := text(pair[0]), text(pair[1]); a != b {
			return fmt.Sprintf("%s: upstream %s, here %s", name, a, b)
		}
	}
	return ""
}

// uncovered are the rules that others do not allow.
func uncovered(by, rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	_, rest := validation.Covers(by, rules)
	return rest
}

func sorted(subjects []rbacv1.Subject) []rbacv1.Subject {
	return slices.SortedFunc(slices.Values(subjects), func(a, b rbacv1.Subject) int {
		return slices.Compare([]string{a.Kind, a.Namespace, a.Name}, []string{b.Kind, b.Namespace, b.Name})
	})
}

// text writes a value down; a pointer by what it points to.
func text(v any) string {
	written, err := yaml.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(written)
}

// differs are the roles and bindings that are not upstream's, and why.
var differs = map[string]string{
	"ClusterRole /system:aggregated-metrics-reader":                                            "metrics-server is built in, and brings this role along",
	"ClusterRoleBinding /system:node-bootstrapper":                                             "nodes join without an administrator: kubeadm makes these three",
	"ClusterRoleBinding /system:certificates.k8s.io:certificatesigningrequests:nodeclient":     "as system:node-bootstrapper",
	"ClusterRoleBinding /system:certificates.k8s.io:certificatesigningrequests:selfnodeclient": "as system:node-bootstrapper",
}
