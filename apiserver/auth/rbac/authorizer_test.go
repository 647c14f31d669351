package rbac

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// world is a store of roles and bindings with its authorizer.
type world struct {
	t     testing.TB
	store *storage.Store
	*Authorizer
}

func newWorld(t testing.TB, objects ...resource.Object) *world {
	t.Helper()
	store := storage.New(raftstoretest.NewLocal(state.Options{}), kinds.NewScheme(), kinds.All())
	w := &world{t, store, New(store, slog.New(slog.DiscardHandler))}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	for _, o := range objects {
		w.write(o, &storage.Change{Object: o})
	}
	return w
}

func (w *world) remove(o resource.Object) { w.write(o, &storage.Change{Delete: true}) }

// write waits until the authorizer knows.
func (w *world) write(o resource.Object, change *storage.Change) {
	w.t.Helper()
	plural := map[string]string{
		"*v1.Role": "roles", "*v1.ClusterRole": "clusterroles", "*v1.RoleBinding": "rolebindings", "*v1.ClusterRoleBinding": "clusterrolebindings",
	}[fmt.Sprintf("%T", o)]
	written, err := w.store.Table(rbacv1.SchemeGroupVersion.WithResource(plural)).Write(context.Background(), o.GetNamespace(), o.GetName(),
		func(*storage.View) (*storage.Change, error) { return change, nil })
	if err != nil {
		w.t.Fatal(err)
	}
	revision, err := strconv.ParseUint(written.GetResourceVersion(), 10, 64)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.CatchUp(context.Background(), revision); err != nil {
		w.t.Fatal(err)
	}
}

// may returns the reason, or "no" and the reason.
func (w *world) may(who user.Info, verb, resource, namespace string) string {
	w.t.Helper()
	decision, reason, err := w.Authorize(context.Background(), authorizer.AttributesRecord{
		User: who, Verb: verb, Resource: resource, Namespace: namespace, ResourceRequest: true,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if decision != authorizer.DecisionAllow {
		return strings.TrimSpace("no " + reason)
	}
	return reason
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func reading(resources ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: resources}}
}

func refer(kind, name string) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
}

var (
	ann   = &user.DefaultInfo{Name: "ann", Groups: []string{"team", "system:authenticated"}}
	bob   = &user.DefaultInfo{Name: "bob", Groups: []string{"system:authenticated"}}
	robot = &user.DefaultInfo{Name: "system:serviceaccount:x:robot"}
)

func TestAuthorize(t *testing.T) {
	person := rbacv1.Subject{Kind: "User", Name: "ann"}
	group := rbacv1.Subject{Kind: "Group", Name: "team"}
	account := rbacv1.Subject{Kind: "ServiceAccount", Name: "robot"}
	foreign := rbacv1.Subject{Kind: "ServiceAccount", Name: "robot", Namespace: "x"}
	w := newWorld(t,
		&rbacv1.ClusterRole{ObjectMeta: meta("", "pods"), Rules: reading("pods")},
		&rbacv1.Role{ObjectMeta: meta("x", "secrets"), Rules: reading("secrets")},
		&rbacv1.ClusterRoleBinding{ObjectMeta: meta("", "everywhere"), RoleRef: refer("ClusterRole", "pods"), Subjects: []rbacv1.Subject{group}},
		&rbacv1.RoleBinding{ObjectMeta: meta("x", "here"), RoleRef: refer("Role", "secrets"), Subjects: []rbacv1.Subject{person, account}},
		&rbacv1.RoleBinding{ObjectMeta: meta("y", "there"), RoleRef: refer("ClusterRole", "pods"), Subjects: []rbacv1.Subject{foreign}},
		&rbacv1.RoleBinding{ObjectMeta: meta("z", "dangling"), RoleRef: refer("Role", "secrets"), Subjects: []rbacv1.Subject{person}},
	)
	for _, c := range []struct {
		who                       user.Info
		verb, resource, namespace string
		want                      string
	}{
		{ann, "get", "pods", "x", `RBAC: allowed by ClusterRoleBinding "everywhere" of ClusterRole "pods" to Group "team"`},
		{ann, "get", "pods", "", `RBAC: allowed by ClusterRoleBinding "everywhere" of ClusterRole "pods" to Group "team"`},
		{ann, "list", "pods", "x", "no"},
		{ann, "get", "secrets", "x", `RBAC: allowed by RoleBinding "here/x" of Role "secrets" to User "ann"`},
		{ann, "get", "secrets", "y", "no"},
		{ann, "get", "secrets", "", "no"},
		{ann, "get", "secrets", "z", `no RBAC: role.rbac.authorization.k8s.io "secrets" not found`},
		{bob, "get", "pods", "x", "no"},
		{robot, "get", "secrets", "x", `RBAC: allowed by RoleBinding "here/x" of Role "secrets" to ServiceAccount "robot/x"`},
		{robot, "get", "pods", "y", `RBAC: allowed by RoleBinding "there/y" of ClusterRole "pods" to ServiceAccount "robot/x"`},
		{robot, "get", "pods", "x", "no"},
	} {
		if got := w.may(c.who, c.verb, c.resource, c.namespace); got != c.want {
			t.Errorf("%s %s %s in %q: %s, want %s", c.who.GetName(), c.verb, c.resource, c.namespace, got, c.want)
		}
	}
}

// TestChangesAreSeen: of roles and of bindings, in any order.
func TestChangesAreSeen(t *testing.T) {
	role := &rbacv1.ClusterRole{ObjectMeta: meta("", "r"), Rules: reading("pods")}
	binding := &rbacv1.RoleBinding{ObjectMeta: meta("x", "b"), RoleRef: refer("ClusterRole", "r"), Subjects: []rbacv1.Subject{{Kind: "User", Name: "bob"}}}
	w := newWorld(t, binding)
	expect := func(step, resource string, allowed bool) {
		t.Helper()
		if got := w.may(bob, "get", resource, "x"); strings.HasPrefix(got, "no") == allowed {
			t.Errorf("%s: get %s: %s", step, resource, got)
		}
	}
	expect("a binding without its role", "pods", false)
	w.write(role, &storage.Change{Object: role})
	expect("with its role", "pods", true)
	other := role.DeepCopy()
	other.Rules = reading("services")
	w.write(other, &storage.Change{Object: other})
	expect("after a change of the role", "pods", false)
	expect("after a change of the role", "services", true)
	w.remove(binding)
	expect("without the binding", "services", false)
	w.write(binding, &storage.Change{Object: binding})
	expect("with the binding again", "services", true)
	w.remove(role)
	expect("without the role", "services", false)
	w.remove(binding)
	if len(w.index.roles) != 0 {
		t.Errorf("remembered: %v", w.index.roles)
	}
}

// TestIndexIsAWalkOverAll: in random worlds, under random changes.
func TestIndexIsAWalkOverAll(t *testing.T) {
	const steps = 400
	random := rand.New(rand.NewPCG(1, 2))
	w := newWorld(t)
	bindings := map[string]*rbacv1.RoleBinding{}
	roles := map[string]*rbacv1.Role{}
	pick := func(of string) string { return fmt.Sprintf("%s%d", of, random.IntN(4)) }
	for range steps {
		namespace, name := pick("ns"), pick("o")
		key := namespace + "/" + name
		switch random.IntN(4) {
		case 0:
			roles[key] = &rbacv1.Role{ObjectMeta: meta(namespace, name), Rules: reading(pick("things"), pick("things"))}
			w.write(roles[key], &storage.Change{Object: roles[key]})
		case 1:
			bindings[key] = &rbacv1.RoleBinding{
				ObjectMeta: meta(namespace, name), RoleRef: refer("Role", pick("o")),
				Subjects: []rbacv1.Subject{{Kind: "User", Name: pick("u")}, {Kind: "Group", Name: pick("g")}},
			}
			w.write(bindings[key], &storage.Change{Object: bindings[key]})
		case 2:
			if o := roles[key]; o != nil {
				w.remove(o)
				delete(roles, key)
			}
		default:
			if o := bindings[key]; o != nil {
				w.remove(o)
				delete(bindings, key)
			}
		}
		who := &user.DefaultInfo{Name: pick("u"), Groups: []string{pick("g"), pick("g")}}
		resource, in := pick("things"), pick("ns")
		if got, want := !strings.HasPrefix(w.may(who, "get", resource, in), "no"), walk(bindings, roles, who, resource, in); got != want {
			t.Fatalf("%v get %s in %s: %v, want %v", who, resource, in, got, want)
		}
	}
}

func walk(bindings map[string]*rbacv1.RoleBinding, roles map[string]*rbacv1.Role, who user.Info, resource, namespace string) bool {
	for _, b := range bindings {
		role := roles[b.Namespace+"/"+b.RoleRef.Name]
		if b.Namespace != namespace || role == nil {
			continue
		}
		for _, s := range b.Subjects {
			holds := s.Kind == "User" && s.Name == who.GetName() || s.Kind == "Group" && has(who.GetGroups(), s.Name)
			if holds && has(role.Rules[0].Resources, resource) {
				return true
			}
		}
	}
	return false
}

// BenchmarkAuthorize is a service account among a thousand bindings, refused.
func BenchmarkAuthorize(b *testing.B) {
	var objects []resource.Object
	for i := range 1000 {
		objects = append(objects, &rbacv1.RoleBinding{
			ObjectMeta: meta("x", "b"+strconv.Itoa(i)), RoleRef: refer("ClusterRole", "view"),
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "robot" + strconv.Itoa(i)}},
		})
	}
	rules := make([]rbacv1.PolicyRule, 20)
	for i := range rules {
		rules[i] = reading("a", "b", "c", "d", "e", "f", "g", "h")[0]
	}
	objects = append(objects, &rbacv1.ClusterRole{ObjectMeta: meta("", "view"), Rules: rules})
	w := newWorld(b, objects...)
	request := authorizer.AttributesRecord{
		User: &user.DefaultInfo{Name: "system:serviceaccount:x:robot7", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:x", "system:authenticated"}},
		Verb: "get", Resource: "pods", Namespace: "x", ResourceRequest: true,
	}
	b.ReportAllocs()
	for b.Loop() {
		if decision, _, _ := w.Authorize(b.Context(), request); decision == authorizer.DecisionAllow {
			b.Fatal("allowed")
		}
	}
}
