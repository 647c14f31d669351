package policy

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
)

// writesAtOnce is how many objects are made at once; they share commits.
const writesAtOnce = 16

// Reconcile makes what is missing of the roles and bindings. It may be called again
// at any time. The library's calls have no context: the client's transport must end
// them with ctx.
func Reconcile(ctx context.Context, client kubernetes.Interface) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writesAtOnce)
	for _, step := range steps(client) {
		group.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return step()
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("default roles: %w", err)
	}
	return nil
}

// steps are the objects, each made by itself.
func steps(client kubernetes.Interface) []func() error {
	namespaces, rbac := client.CoreV1().Namespaces(), client.RbacV1()
	var all []func() error
	for _, r := range ClusterRoles() {
		all = append(
			all,
			roleStep(reconciliation.ClusterRoleRuleOwner{ClusterRole: r}, reconciliation.ClusterRoleModifier{Client: rbac.ClusterRoles()}),
		)
	}
	for _, r := range Roles() {
		all = append(
			all,
			roleStep(reconciliation.RoleRuleOwner{Role: r}, reconciliation.RoleModifier{Client: rbac, NamespaceClient: namespaces}),
		)
	}
	for _, b := range ClusterRoleBindings() {
		all = append(all, bindingStep(reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: b},
			reconciliation.ClusterRoleBindingClientAdapter{Client: rbac.ClusterRoleBindings()}))
	}
	for _, b := range RoleBindings() {
		all = append(all, bindingStep(reconciliation.RoleBindingAdapter{RoleBinding: b},
			reconciliation.RoleBindingClientAdapter{Client: rbac, NamespaceClient: namespaces}))
	}
	return all
}

func roleStep(role reconciliation.RuleOwner, client reconciliation.RuleOwnerModifier) func() error {
	return func() error {
		_, err := (&reconciliation.ReconcileRoleOptions{Role: role, Client: client, Confirm: true}).Run()
		return err
	}
}

func bindingStep(binding reconciliation.RoleBinding, client reconciliation.RoleBindingModifier) func() error {
	return func() error {
		_, err := (&reconciliation.ReconcileRoleBindingOptions{RoleBinding: binding, Client: client, Confirm: true}).Run()
		return err
	}
}
