package rbac

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func TestEscalation(t *testing.T) {
	special := func(verb, resource string, names ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{Verbs: []string{verb}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{resource}, ResourceNames: names}}
	}
	bind := func(role, who string) *rbacv1.ClusterRoleBinding {
		return &rbacv1.ClusterRoleBinding{ObjectMeta: meta("", who), RoleRef: refer("ClusterRole", role), Subjects: []rbacv1.Subject{{Kind: "User", Name: who}}}
	}
	w := newWorld(t,
		&rbacv1.ClusterRole{ObjectMeta: meta("", "pods"), Rules: reading("pods", "services")},
		&rbacv1.ClusterRole{ObjectMeta: meta("", "secrets"), Rules: reading("secrets")},
		&rbacv1.ClusterRole{ObjectMeta: meta("", "all"), Rules: everything},
		&rbacv1.ClusterRole{ObjectMeta: meta("", "escalates"), Rules: special("escalate", "clusterroles")},
		&rbacv1.ClusterRole{ObjectMeta: meta("", "binds"), Rules: special("bind", "clusterroles", "secrets")},
		bind("pods", "ann"), bind("all", "root"), bind("escalates", "climber"), bind("binds", "binder"),
	)
	person := func(name string, groups ...string) user.Info { return &user.DefaultInfo{Name: name, Groups: groups} }
	role := func(resources ...string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: meta("", "new"), Rules: reading(resources...)}
	}
	gathering := role()
	gathering.Rules = nil
	gathering.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}
	binding := func(role string) *rbacv1.RoleBinding {
		return &rbacv1.RoleBinding{ObjectMeta: meta("x", "new"), RoleRef: refer("ClusterRole", role)}
	}
	owned := role("secrets")
	owned.OwnerReferences = []metav1.OwnerReference{{Name: "o"}}
	for name, c := range map[string]struct {
		who         user.Info
		object, old resource.Object
		refused     string
	}{
		"grants what he holds":         {person("ann"), role("pods"), nil, ""},
		"grants more":                  {person("ann"), role("pods", "secrets"), nil, `clusterroles.rbac.authorization.k8s.io "new" is forbidden: user "ann" (groups=[]) is attempting to grant RBAC permissions not currently held:` + "\n" + `{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`},
		"adds more":                    {person("ann"), role("pods", "secrets"), role("pods"), "permissions not currently held"},
		"may escalate":                 {person("climber"), role("secrets"), nil, ""},
		"holds everything":             {person("root"), role("secrets"), nil, ""},
		"a master":                     {person("m", "system:masters"), role("secrets"), nil, ""},
		"the collector frees a role":   {person("ann"), role("secrets"), owned, ""},
		"gathers without all":          {person("ann"), gathering, nil, "must have cluster-admin privileges to use the aggregationRule"},
		"stops a gathering role":       {person("ann"), role("pods"), gathering, "must have cluster-admin privileges"},
		"gathers with all":             {person("root"), gathering, nil, ""},
		"binds what he holds":          {person("ann"), binding("pods"), nil, ""},
		"binds more":                   {person("ann"), binding("secrets"), nil, `rolebindings.rbac.authorization.k8s.io "new" is forbidden: user "ann"`},
		"may bind this role":           {person("binder"), binding("secrets"), nil, ""},
		"may not bind another":         {person("binder"), binding("pods"), nil, "permissions not currently held"},
		"binds a role that is missing": {person("ann"), binding("missing"), nil, `clusterroles.rbac.authorization.k8s.io "missing" not found`},
		"binds a missing one, as root": {person("root"), binding("missing"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			plural, operation := "clusterroles", admission.Create
			if c.object.GetNamespace() != "" {
				plural = "rolebindings"
			}
			var old runtime.Object
			if c.old != nil {
				old, operation = c.old, admission.Update
			}
			err := NewEscalation(w.Authorizer, w.Authorizer).Validate(t.Context(), admission.NewAttributesRecord(c.object, old, schema.GroupVersionKind{},
				c.object.GetNamespace(), "new", rbacv1.SchemeGroupVersion.WithResource(plural), "", operation, nil, false, c.who), nil)
			if c.refused == "" && err != nil || c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("%v, want %q", err, c.refused)
			}
		})
	}
}
