package rbac

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// Authorizer judges by roles and bindings. It is safe for concurrent use; until
// Run has read the store, it allows nothing.
type Authorizer struct {
	index     *index
	followers []*storage.Follower
}

var _ authorizer.RuleResolver = (*Authorizer)(nil)

// New returns an authorizer over the roles and bindings in the store.
func New(store *storage.Store, logger *slog.Logger) *Authorizer {
	x := newIndex()
	follow := func(resource string, changed storage.Changed) *storage.Follower {
		return store.Table(rbacv1.SchemeGroupVersion.WithResource(resource)).Follow(changed, logger)
	}
	return &Authorizer{index: x, followers: []*storage.Follower{
		follow("clusterroles", x.setRole), follow("roles", x.setRole),
		follow("clusterrolebindings", x.setBinding), follow("rolebindings", x.setBinding),
	}}
}

// Run follows the store until ctx ends.
func (a *Authorizer) Run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, f := range a.followers {
		wg.Go(func() { f.Run(ctx) })
	}
	wg.Wait()
}

// CatchUp waits until all changes up to the revision are known, or ctx ends.
func (a *Authorizer) CatchUp(ctx context.Context, revision uint64) error {
	for _, f := range a.followers {
		if err := f.Reach(ctx, revision); err != nil {
			return err
		}
	}
	return nil
}

// Authorize allows what a role of the user does, and has no opinion on the rest.
func (a *Authorizer) Authorize(_ context.Context, wanted authorizer.Attributes) (authorizer.Decision, string, error) {
	q := questionOf(wanted)
	var missing []error
	for g := range a.grants(wanted.GetUser(), wanted.GetNamespace()) {
		rules := g.role.rules.Load()
		if rules == nil {
			missing = append(missing, g.role.name.missing())
			continue
		}
		for i := range *rules {
			if allows(&(*rules)[i], &q) {
				return authorizer.DecisionAllow, g.reason, nil
			}
		}
	}
	if len(missing) > 0 {
		return authorizer.DecisionNoOpinion, fmt.Sprintf("RBAC: %v", utilerrors.NewAggregate(missing)), nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// grants yields the roles that a user holds in the cluster and in a namespace.
func (a *Authorizer) grants(who user.Info, namespace string) iter.Seq[grant] {
	return func(yield func(grant) bool) {
		if !yieldGrants(a.index.grantsIn(""), who, yield) || namespace == "" {
			return
		}
		yieldGrants(a.index.grantsIn(namespace), who, yield)
	}
}

func yieldGrants(grants map[subject][]grant, who user.Info, yield func(grant) bool) bool {
	for _, g := range grants[subject{name: who.GetName()}] {
		if !yield(g) {
			return false
		}
	}
	for _, group := range who.GetGroups() {
		for _, g := range grants[subject{group: true, name: group}] {
			if !yield(g) {
				return false
			}
		}
	}
	return true
}

// missing is how upstream tells of a binding to a role that is not there.
func (n roleName) missing() error {
	if n.namespace != "" {
		return apierrors.NewNotFound(rbacv1.Resource("role"), n.name)
	}
	return apierrors.NewNotFound(rbacv1.Resource("clusterrole"), n.name)
}

// rules are all that a user holds in the cluster and in a namespace; the error
// names roles that he is bound to and that are not there.
func (a *Authorizer) rules(who user.Info, namespace string) ([]rbacv1.PolicyRule, error) {
	var all []rbacv1.PolicyRule
	var missing []error
	for g := range a.grants(who, namespace) {
		if rules := g.role.rules.Load(); rules != nil {
			all = append(all, *rules...)
		} else {
			missing = append(missing, g.role.name.missing())
		}
	}
	return all, utilerrors.NewAggregate(missing)
}

// rulesOf are the rules of one role.
func (a *Authorizer) rulesOf(name roleName) ([]rbacv1.PolicyRule, error) {
	a.index.mu.Lock()
	r := a.index.roles[name]
	a.index.mu.Unlock()
	if r != nil {
		if rules := r.rules.Load(); rules != nil {
			return *rules, nil
		}
	}
	if name.namespace != "" {
		return nil, apierrors.NewNotFound(rbacv1.Resource("roles"), name.name)
	}
	return nil, apierrors.NewNotFound(rbacv1.Resource("clusterroles"), name.name)
}

// RulesFor implements authorizer.RuleResolver.
func (a *Authorizer) RulesFor(
	_ context.Context,
	who user.Info,
	namespace string,
) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	rules, err := a.rules(who, namespace)
	var resources []authorizer.ResourceRuleInfo
	var paths []authorizer.NonResourceRuleInfo
	for _, r := range rules {
		if len(r.Resources) > 0 {
			resources = append(resources, &authorizer.DefaultResourceRuleInfo{
				Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames,
			})
		}
		if len(r.NonResourceURLs) > 0 {
			paths = append(paths, &authorizer.DefaultNonResourceRuleInfo{Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs})
		}
	}
	return resources, paths, false, err
}
