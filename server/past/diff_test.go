package past

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	rest "github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/server/named"
)

func configMap(name, value string) rest.Object {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name}, Data: map[string]string{"a": value}}
}

// remove deletes a ConfigMap.
func remove(ctx context.Context, t *testing.T, store *storage.Store, name string) {
	t.Helper()
	_, err := store.Table(corev1.SchemeGroupVersion.WithResource("configmaps")).Write(ctx, "n", name,
		func(*storage.View) (*storage.Change, error) { return &storage.Change{Delete: true}, nil })
	if err != nil {
		t.Fatal(err)
	}
}

// listers may list: admin all, tenant what is in the namespace n but for Secrets.
func listers(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetVerb() == "list" && (a.GetUser().GetName() == "admin" || a.GetUser().GetName() == "tenant" && a.GetNamespace() == "n" && a.GetResource() != "secrets") {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

// diffWorld has objects that were created, changed, replaced and deleted, and some in a former namespace.
func diffWorld(t *testing.T) *Past {
	t.Helper()
	p, store := world(t)
	p.source.Authorizer = authorizer.AuthorizerFunc(listers)
	ctx := storage.WithOrigin(t.Context(), storage.Origin{User: "alice", FieldManager: "vi"})
	put(ctx, t, store, "configmaps", configMap("former", "x"))
	remove(ctx, t, store, "former")
	put(ctx, t, store, "namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	put(ctx, t, store, "configmaps", configMap("kept", "1"))
	put(storage.WithOrigin(t.Context(), storage.Origin{User: "bob"}), t, store, "configmaps", configMap("kept", "2"))
	put(ctx, t, store, "configmaps", configMap("gone", "1"))
	remove(ctx, t, store, "gone")
	put(ctx, t, store, "secrets", &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s"}, Data: map[string][]byte{"k": []byte("canary")}})
	return p
}

// spell is an answer in short.
func spell(d *Difference) string {
	var text strings.Builder
	for _, g := range d.Groups {
		fmt.Fprintf(&text, "%s in %q:", g.Kind, g.Namespace)
		for _, c := range g.Objects {
			fmt.Fprintf(&text, " %s %s %v %v;", c.Name, c.Did, c.By, c.Fields)
		}
	}
	return text.String()
}

// TestDiff: each sees what they may list, of the present namespace only unless they may list everywhere; the rest is named.
func TestDiff(t *testing.T) {
	p := diffWorld(t)
	for _, c := range []struct {
		caller string
		span   Span
		want   string
	}{
		{"tenant", Span{Namespace: "n"}, `ConfigMap in "n": gone created and deleted [{alice vi}] []; kept created [{alice vi} {bob }] [];`},
		{"admin", Span{Namespace: "n", Kind: "cm"}, `ConfigMap in "n": former created and deleted [{alice vi}] []; gone created and deleted [{alice vi}] []; kept created [{alice vi} {bob }] [];`},
		{"admin", Span{Kind: "ns"}, `Namespace in "": n created [{alice vi}] [];`},
		{"admin", Span{Kind: "secrets"}, `Secret in "n": s created [{alice vi}] [];`},
	} {
		d, err := p.Diff(t.Context(), &user.DefaultInfo{Name: c.caller}, c.span)
		if err != nil || spell(d) != c.want {
			t.Errorf("%s %+v: %v\n got %s\nwant %s", c.caller, c.span, err, spell(d), c.want)
		}
	}
	d, err := p.Diff(t.Context(), &user.DefaultInfo{Name: "tenant"}, Span{Namespace: "n"})
	if err != nil || len(d.Forbidden) != 1 || d.Forbidden[0] != "secrets" || len(d.LeftKinds) != 2 || d.Left != 0 {
		t.Errorf("%v %+v", err, d)
	}
}

// TestDiffRefuses: who may list nothing of what is asked, and times that cannot be.
func TestDiffRefuses(t *testing.T) {
	p := diffWorld(t)
	hour := func(n int) time.Time { return time.Now().Add(time.Duration(n) * time.Hour) }
	for name, c := range map[string]struct {
		caller string
		span   Span
		is     func(error) bool
	}{
		"everywhere":        {"tenant", Span{}, apierrors.IsForbidden},
		"another namespace": {"tenant", Span{Namespace: "m", Kind: "cm"}, apierrors.IsForbidden},
		"a kind":            {"tenant", Span{Namespace: "n", Kind: "secret"}, apierrors.IsForbidden},
		"nobody":            {"eve", Span{Namespace: "n"}, apierrors.IsForbidden},
		"the future":        {"admin", Span{From: hour(1)}, apierrors.IsBadRequest},
		"to the future":     {"admin", Span{To: hour(1)}, apierrors.IsBadRequest},
		"before history":    {"admin", Span{From: hour(-1)}, apierrors.IsResourceExpired},
		"backwards":         {"admin", Span{From: hour(0), To: hour(-1)}, apierrors.IsBadRequest},
		"no such kind":      {"admin", Span{Kind: "wheels"}, apierrors.IsBadRequest},
	} {
		if d, err := p.Diff(t.Context(), &user.DefaultInfo{Name: c.caller}, c.span); !c.is(err) {
			t.Errorf("%s: %v %+v", name, err, d)
		}
	}
}

// TestPurge: what an object was is told no more, by no way; what it is and that it changed are.
func TestPurge(t *testing.T) {
	p := diffWorld(t)
	p.source.Authorizer = authorizer.AuthorizerFunc(allowed)
	admin, q := &user.DefaultInfo{Name: "admin"}, named.Question{Kind: "cm", Namespace: "n", Name: "kept"}
	before, err := p.Answer(t.Context(), admin, Question{Question: q})
	if err != nil || len(before.Changes) != 2 || len(before.Changes[1].Fields) != 1 {
		t.Fatalf("%v %+v", err, before)
	}
	done, err := p.Purge(storage.WithOrigin(t.Context(), storage.Origin{User: "root"}), q)
	if err != nil || done.ResourceVersion == 0 {
		t.Fatalf("%v %+v", err, done)
	}
	after, err := p.Answer(t.Context(), admin, Question{Question: q})
	if err != nil || len(after.Changes) != 2 || after.Changes[1].Fields != nil || after.Changes[1].Unknown != "its values were purged" || after.Changes[1].By != "bob" {
		t.Errorf("%v %+v", err, after)
	}
	table := p.source.Storage.Table(corev1.SchemeGroupVersion.WithResource("configmaps"))
	exact := storage.WithFormer(storage.Exactly(t.Context()), func(context.Context) bool { return true })
	first := fmt.Sprint(before.Changes[0].ResourceVersion)
	if _, err := table.Get(exact, "n", "kept", first); !apierrors.IsResourceExpired(err) || !strings.Contains(err.Error(), "was purged by root") {
		t.Errorf("GET: %v", err)
	}
	list := storage.ListOptions{Selection: storage.Selection{Namespace: "n"}, ResourceVersion: first, Match: metav1.ResourceVersionMatchExact}
	if _, err := table.List(exact, list); !apierrors.IsResourceExpired(err) {
		t.Errorf("LIST: %v", err)
	}
	if _, err := table.Get(exact, "n", "kept", fmt.Sprint(before.Changes[1].ResourceVersion)); err != nil {
		t.Errorf("what it still is: %v", err)
	}
	if _, err := table.Get(exact, "n", "gone", first); !apierrors.IsNotFound(err) {
		t.Errorf("another object: %v", err)
	}
	if done.Unheard {
		t.Error("this server knows the object")
	}
}

// noHistory is a server's history that answers nothing, as one that is busy, behind or damaged.
type noHistory struct{ storage.History }

func (noHistory) Changes(context.Context, string, uint64, int) ([]history.Known, []history.Hole, bool, error) {
	return nil, nil, false, history.ErrBusy
}

// TestPurgeWithoutHistory: what this server's history has does not matter, other servers may have the values.
func TestPurgeWithoutHistory(t *testing.T) {
	p, store := world(t)
	q := named.Question{Kind: "cm", Namespace: "n", Name: "never"}
	if done, err := p.Purge(t.Context(), q); err != nil || done.ResourceVersion == 0 || !done.Unheard {
		t.Errorf("a name that this server never heard: %v %+v", err, done)
	}
	for name, h := range map[string]storage.History{"busy": noHistory{}, "none": nil} {
		store.KeepHistory(h)
		if done, err := p.Purge(t.Context(), q); err != nil || done.ResourceVersion == 0 || done.Unheard {
			t.Errorf("%s: %v %+v", name, err, done)
		}
	}
}
