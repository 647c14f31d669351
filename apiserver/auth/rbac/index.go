package rbac

import (
	"fmt"
	"sync"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// index knows the roles of every subject. Readers take no lock: what they read is
// made anew by the first of them after a change.
type index struct {
	mu     sync.Mutex // held by those who change roles
	roles  map[roleName]*role
	scopes sync.Map // namespace, "" for the cluster, to *scope
}

// roleName: a ClusterRole is in no namespace.
type roleName struct{ namespace, name string }

// role is a place in which a role may be. Bindings point to it, so that a change
// of the role changes none of them.
type role struct {
	name  roleName
	rules atomic.Pointer[[]rbacv1.PolicyRule] // nil: there is no such role
	users int                                 // bindings that point here; guarded by index.mu
}

// scope is the bindings of one namespace, or of the cluster.
type scope struct {
	mu       sync.Mutex
	bindings map[string]*binding
	grants   atomic.Pointer[map[subject][]grant] // nil: to be made from bindings
}

// binding is what a RoleBinding and a ClusterRoleBinding have in common.
type binding struct {
	kind, namespace, name string
	ref                   rbacv1.RoleRef
	subjects              []rbacv1.Subject
	role                  *role
}

// subject is a user or a group. A service account is the user that it becomes.
type subject struct {
	group bool
	name  string
}

// grant is a role that a subject holds, and the words for why.
type grant struct {
	role   *role
	reason string
}

func newIndex() *index { return &index{roles: map[roleName]*role{}} }

// at returns the place of a role; the caller holds mu.
func (x *index) at(name roleName) *role {
	r, ok := x.roles[name]
	if !ok {
		r = &role{name: name}
		x.roles[name] = r
	}
	return r
}

// forget drops a place that nobody needs; the caller holds mu.
func (x *index) forget(r *role) {
	if r.users == 0 && r.rules.Load() == nil {
		delete(x.roles, r.name)
	}
}

// setRole follows a Role or ClusterRole.
func (x *index) setRole(was, is resource.Object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if is == nil {
		r := x.at(roleName{was.GetNamespace(), was.GetName()})
		r.rules.Store(nil)
		x.forget(r)
		return
	}
	rules := rulesOf(is)
	x.at(roleName{is.GetNamespace(), is.GetName()}).rules.Store(&rules)
}

func rulesOf(o resource.Object) []rbacv1.PolicyRule {
	if r, ok := o.(*rbacv1.ClusterRole); ok {
		return r.Rules
	}
	return o.(*rbacv1.Role).Rules
}

// setBinding follows a RoleBinding or ClusterRoleBinding.
func (x *index) setBinding(was, is resource.Object) {
	x.mu.Lock()
	defer x.mu.Unlock()
	o := is
	if is == nil {
		o = was
	}
	s := x.scope(o.GetNamespace())
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.bindings[o.GetName()]; old != nil {
		old.role.users--
		x.forget(old.role)
		delete(s.bindings, o.GetName())
	}
	if is != nil {
		b := bindingOf(is)
		b.role = x.at(refersTo(b.ref, b.namespace))
		b.role.users++
		s.bindings[b.name] = b
	}
	s.grants.Store(nil)
	if len(s.bindings) == 0 {
		x.scopes.Delete(o.GetNamespace())
	}
}

func (x *index) scope(namespace string) *scope {
	s, _ := x.scopes.LoadOrStore(namespace, &scope{bindings: map[string]*binding{}})
	return s.(*scope)
}

func bindingOf(o resource.Object) *binding {
	if b, ok := o.(*rbacv1.ClusterRoleBinding); ok {
		return &binding{kind: "ClusterRoleBinding", name: b.Name, ref: b.RoleRef, subjects: b.Subjects}
	}
	b := o.(*rbacv1.RoleBinding)
	return &binding{kind: "RoleBinding", namespace: b.Namespace, name: b.Name, ref: b.RoleRef, subjects: b.Subjects}
}

func refersTo(ref rbacv1.RoleRef, namespace string) roleName {
	if ref.Kind == "Role" {
		return roleName{namespace, ref.Name}
	}
	return roleName{"", ref.Name}
}

// grantsIn returns who holds what in a namespace, or, for "", in the cluster.
func (x *index) grantsIn(namespace string) map[subject][]grant {
	found, ok := x.scopes.Load(namespace)
	if !ok {
		return nil
	}
	s := found.(*scope)
	if grants := s.grants.Load(); grants != nil {
		return *grants
	}
	return s.make()
}

func (s *scope) make() map[subject][]grant {
	s.mu.Lock()
	defer s.mu.Unlock()
	if grants := s.grants.Load(); grants != nil {
		return *grants // another reader was faster
	}
	grants := map[subject][]grant{}
	for _, b := range s.bindings {
		for i := range b.subjects {
			if who, ok := b.subject(&b.subjects[i]); ok {
				grants[who] = append(grants[who], grant{b.role, b.reason(&b.subjects[i])})
			}
		}
	}
	s.grants.Store(&grants)
	return grants
}

func (b *binding) subject(s *rbacv1.Subject) (who subject, ok bool) {
	switch s.Kind {
	case rbacv1.UserKind:
		return subject{name: s.Name}, true
	case rbacv1.GroupKind:
		return subject{group: true, name: s.Name}, true
	case rbacv1.ServiceAccountKind:
		namespace := b.accountNamespace(s)
		return subject{name: serviceaccount.MakeUsername(namespace, s.Name)}, namespace != ""
	}
	return subject{}, false
}

func (b *binding) accountNamespace(s *rbacv1.Subject) string {
	if s.Namespace != "" {
		return s.Namespace
	}
	return b.namespace
}

// reason is worded as upstream's, which has name and namespace in this order.
func (b *binding) reason(s *rbacv1.Subject) string {
	name, who := b.name, s.Name
	if b.namespace != "" {
		name += "/" + b.namespace
	}
	if s.Kind == rbacv1.ServiceAccountKind {
		who += "/" + b.accountNamespace(s)
	}
	return fmt.Sprintf("RBAC: allowed by %s %q of %s %q to %s %q", b.kind, name, b.ref.Kind, b.ref.Name, s.Kind, who)
}
