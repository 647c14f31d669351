package clusterroleaggregation

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func role(name string, labels map[string]string, resources ...string) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
	for _, resource := range resources {
		r.Rules = append(r.Rules, rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{resource}})
	}
	return r
}

func gathering(name, label string) *rbacv1.ClusterRole {
	r := role(name, nil)
	r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{label: "true"}}}}
	return r
}

func resources(r *rbacv1.ClusterRole) []string {
	var all []string
	for _, rule := range r.Rules {
		all = append(all, rule.Resources...)
	}
	return all
}

func TestRolesAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		toView, toEdit := map[string]string{"view": "true"}, map[string]string{"edit": "true"}
		view := gathering("view", "view")
		view.Labels = toEdit // a role that gathers, and is gathered
		reconciletest.Add(w, view)
		reconciletest.Add(w, gathering("edit", "edit"))
		reconciletest.Add(w, role("pods", toView, "pods", "services"))
		reconciletest.Add(w, role("more-pods", toView, "pods"))
		reconciletest.Add(w, role("secrets", toEdit, "secrets"))
		w.Run(New())
		w.Settle()
		expect := func(name string, want ...string) {
			t.Helper()
			r, err := w.Client.RbacV1().ClusterRoles().Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, resources(r)); diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
		}
		expect("view", "pods", "services")
		expect("edit", "secrets", "pods", "services")
		w.Writes()
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("on an unchanged world: %v", writes)
		}
		if err := w.Client.RbacV1().ClusterRoles().Delete(t.Context(), "pods", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		expect("view", "pods")
		expect("edit", "secrets", "pods")
	})
}

func TestABadSelectorIsAnError(t *testing.T) {
	r := gathering("r", "l")
	r.AggregationRule.ClusterRoleSelectors[0].MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Near"}}
	if _, err := plan(r, nil); err == nil {
		t.Error("a selector that nobody understands was taken for one that chooses nothing")
	}
}
