package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Escalation refuses a user who grants permissions that he does not have: by writing a role, unless he may
// "escalate" it, or by binding one, unless he may "bind" it. It is a plugin for the admission chain.
type Escalation struct {
	rules      *Authorizer
	authorizer authorizer.UnconditionalAuthorizer
}

var (
	_ admission.MutationInterface   = (*Escalation)(nil)
	_ admission.ValidationInterface = (*Escalation)(nil)
)

// NewEscalation asks rules what a user holds, and whole, the judge of all requests,
// what he may. Before whole says no, rules has caught up with the cluster: what it is
// asked after that is the newest.
func NewEscalation(rules *Authorizer, whole authorizer.UnconditionalAuthorizer) *Escalation {
	return &Escalation{rules, whole}
}

// Handles implements admission.Interface.
func (e *Escalation) Handles(operation admission.Operation) bool {
	return operation == admission.Create || operation == admission.Update
}

// Admit implements admission.MutationInterface; it changes nothing.
func (e *Escalation) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return nil
}

// Validate implements admission.ValidationInterface.
func (e *Escalation) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().Group != rbacv1.GroupName || a.GetSubresource() != "" || a.GetUserInfo() == nil ||
		slices.Contains(a.GetUserInfo().GetGroups(), user.SystemPrivilegedGroup) || onlyOwnersChange(a) {
		return nil
	}
	var err error
	switch object := a.GetObject().(type) {
	case *rbacv1.Role:
		err = e.judgeRole(ctx, a, object.Rules, false)
	case *rbacv1.ClusterRole:
		old, _ := a.GetOldObject().(*rbacv1.ClusterRole)
		err = e.judgeRole(ctx, a, object.Rules, gathers(object) || old != nil && gathers(old))
	case *rbacv1.RoleBinding:
		err = e.judgeBinding(ctx, a, object.RoleRef)
	case *rbacv1.ClusterRoleBinding:
		err = e.judgeBinding(ctx, a, object.RoleRef)
	}
	if err == nil || apierrors.IsNotFound(err) {
		return err
	}
	return apierrors.NewForbidden(a.GetResource().GroupResource(), nameOf(a), err)
}

func nameOf(a admission.Attributes) string {
	if object, ok := a.GetObject().(interface{ GetName() string }); ok {
		return object.GetName()
	}
	return a.GetName()
}

// onlyOwnersChange: the garbage collector may take away what holds an object.
func onlyOwnersChange(a admission.Attributes) bool {
	if a.GetOperation() != admission.Update || a.GetOldObject() == nil {
		return false
	}
	bare := func(o runtime.Object) runtime.Object {
		c := o.DeepCopyObject().(resource.Object)
		c.SetOwnerReferences(nil)
		c.SetFinalizers(nil)
		c.SetManagedFields(nil)
		c.SetResourceVersion("")
		return c
	}
	return apiequality.Semantic.DeepEqual(bare(a.GetObject()), bare(a.GetOldObject()))
}

func gathers(role *rbacv1.ClusterRole) bool {
	return role.AggregationRule != nil && len(role.AggregationRule.ClusterRoleSelectors) > 0
}

// everything is what a role may come to hold that gathers others.
var everything = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

var errGathers = errors.New("must have cluster-admin privileges to use the aggregationRule")

func (e *Escalation) judgeRole(ctx context.Context, a admission.Attributes, rules []rbacv1.PolicyRule, gathers bool) error {
	if e.may(ctx, a, "escalate", a.GetResource().Resource, a.GetName()) {
		return nil
	}
	if err := e.covers(a, rules); err != nil {
		return err
	}
	if gathers && e.covers(a, everything) != nil {
		return errGathers
	}
	return nil
}

func (e *Escalation) judgeBinding(ctx context.Context, a admission.Attributes, ref rbacv1.RoleRef) error {
	plural := "clusterroles"
	if ref.Kind == "Role" {
		plural = "roles"
	}
	if e.may(ctx, a, "bind", plural, ref.Name) {
		return nil
	}
	rules, err := e.rules.rulesOf(refersTo(ref, a.GetNamespace()))
	if err != nil {
		return err
	}
	return e.covers(a, rules)
}

func (e *Escalation) may(ctx context.Context, a admission.Attributes, verb, resource, name string) bool {
	decision, _, err := e.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: verb, APIGroup: rbacv1.GroupName, APIVersion: "*", Resource: resource,
		Namespace: a.GetNamespace(), Name: name, ResourceRequest: true,
	})
	return err == nil && decision == authorizer.DecisionAllow
}

// covers fails unless the user holds all of the rules.
func (e *Escalation) covers(a admission.Attributes, rules []rbacv1.PolicyRule) error {
	who := a.GetUserInfo()
	held, resolving := e.rules.rules(who, a.GetNamespace())
	covered, missing := validation.Covers(held, rules)
	if covered {
		return nil
	}
	message := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s",
		who.GetName(), who.GetGroups(), strings.Join(describe(missing), "\n"))
	if resolving != nil {
		message += fmt.Sprintf("; resolution errors: %v", []error{resolving})
	}
	return errors.New(message)
}
