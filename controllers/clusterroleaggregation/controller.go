package clusterroleaggregation

import (
	"context"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

var clusterRoles = reconcile.KindOf[*rbacv1.ClusterRole](rbacv1.SchemeGroupVersion.WithResource("clusterroles"))

// New fills the roles.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:  "clusterrole-aggregation-controller",
		Reads: []reconcile.Read{clusterRoles},
		Run:   run,
	}
}

type controller struct {
	env   *reconcile.Env
	roles reconcile.Cache[*rbacv1.ClusterRole]
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{env, clusterRoles.From(env)}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "clusterroleaggregation",
		Queue:     "ClusterRoleAggregator",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{reconcile.Changes(c.roles, c.gatherers)},
		Env:       env,
	})
}

// gatherers maps a role to all that gather: a change of its labels may concern each.
func (c *controller) gatherers(metav1.Object, metav1.Object) []reconcile.Key {
	roles, err := c.roles.List("", nil)
	if err != nil {
		return nil
	}
	var keys []reconcile.Key
	for _, role := range roles {
		if role.AggregationRule != nil {
			keys = append(keys, reconcile.Key{Name: role.Name})
		}
	}
	return keys
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	role, err := c.roles.Get(key)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || role.AggregationRule == nil || role.DeletionTimestamp != nil {
		return 0, err
	}
	all, err := c.roles.List("", nil)
	if err != nil {
		return 0, err
	}
	rules, err := plan(role, all)
	if err != nil || equality.Semantic.DeepEqual(rules, role.Rules) {
		return 0, err
	}
	filled := role.DeepCopy()
	filled.Rules = rules
	_, err = c.env.Client.RbacV1().ClusterRoles().Update(reconcile.WithCause(ctx, role), filled, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	return 0, err
}

// plan returns the rules that a role gathers. A selector that cannot be read is an error.
func plan(role *rbacv1.ClusterRole, all []*rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	chosen := map[string]*rbacv1.ClusterRole{}
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, err
		}
		for _, r := range all {
			if r.Name != role.Name && selector.Matches(labels.Set(r.Labels)) {
				chosen[r.Name] = r
			}
		}
	}
	var rules []rbacv1.PolicyRule
	for _, r := range sorted(chosen) {
		for _, rule := range r.Rules {
			if !slices.ContainsFunc(rules, func(have rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(have, rule) }) {
				rules = append(rules, *rule.DeepCopy())
			}
		}
	}
	return rules, nil
}

func sorted(roles map[string]*rbacv1.ClusterRole) []*rbacv1.ClusterRole {
	list := make([]*rbacv1.ClusterRole, 0, len(roles))
	for _, r := range roles {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *rbacv1.ClusterRole) int { return strings.Compare(a.Name, b.Name) })
	return list
}
