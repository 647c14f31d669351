package past

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/explain"
	"github.com/setpoint-io/setpoint/apiserver/kinds"
	rest "github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/server/named"
)

// TestDifferences: elements of lists are told apart by their names, and what every change changes is no difference.
func TestDifferences(t *testing.T) {
	pod := func(change func(*corev1.Pod)) *corev1.Pod {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", ResourceVersion: "1", Annotations: map[string]string{lastApplied: "x"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "i:1"}, {Name: "b", Args: []string{"x", "y"}}}}}
		change(p)
		return p
	}
	got, more := differences(explain.Object{Resource: "pods"}, pod(func(*corev1.Pod) {}), pod(func(p *corev1.Pod) {
		p.ResourceVersion, p.Annotations = "2", map[string]string{lastApplied: "y", "a.b/c": "1"}
		p.Spec.Containers = []corev1.Container{{Name: "b", Args: []string{"x", "z"}}, {Name: "new"}, {Name: "a", Image: "i:2"}}
	}))
	text, err := json.Marshal(got)
	want := `[{"path":"metadata.annotations[\"a.b/c\"]","after":"1"},{"path":"spec.containers[name=a].image","before":"i:1","after":"i:2"},` +
		`{"path":"spec.containers[name=b].args[1]","before":"y","after":"z"},{"path":"spec.containers[name=new].name","after":"new"},` +
		`{"path":"spec.containers[name=new].resources","after":{}},` +
		`{"path":"spec.containers[].name","before":["a","b"],"after":["b","a"]}]`
	if err != nil || more != 0 || string(text) != want {
		t.Errorf("%v %d\n got %s\nwant %s", err, more, text, want)
	}
	large := map[string]string{}
	for i := range fieldsMax + 7 {
		large["k"+strings.Repeat("x", i)] = strings.Repeat("é", valueRunesMax+5)
	}
	got, more = differences(explain.Object{Resource: "configmaps"}, &corev1.ConfigMap{}, &corev1.ConfigMap{Data: large})
	if len(got) != fieldsMax || more != 7 || len([]rune(got[0].After.(string))) != valueRunesMax+1 {
		t.Errorf("%d fields and %d more", len(got), more)
	}
	policy := func(rules []networkingv1.NetworkPolicyIngressRule) *networkingv1.NetworkPolicy {
		return &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{Ingress: rules}}
	}
	got, _ = differences(explain.Object{Resource: "networkpolicies"}, policy(nil), policy([]networkingv1.NetworkPolicyIngressRule{{}}))
	if len(got) != 1 || got[0].Path != "spec.ingress[0]" || got[0].After == nil {
		t.Errorf("all traffic is let in, which is told as %+v", got)
	}
	secret := func(data map[string][]byte) *corev1.Secret { return &corev1.Secret{Data: data} }
	got, _ = differences(explain.Object{Resource: "secrets"}, secret(map[string][]byte{"a": []byte("canary")}), secret(map[string][]byte{"b": []byte("canary")}))
	if len(got) != 2 || got[0] != (Field{"data.a", "*** (before)", nil}) || got[1] != (Field{"data.b", nil, "*** (after)"}) {
		t.Errorf("of a Secret: %+v", got)
	}
}

// lone is a replica of its own, or one that waits in vain for the others.
type lone struct {
	*raftstoretest.Local
	cut atomic.Bool
	// caughtUp is called before a question gets the newest state.
	caughtUp func()
}

func (l *lone) ReadIndex(ctx context.Context) (*state.Root, error) {
	if l.cut.Load() {
		return nil, raftstore.ErrNoLeader
	}
	if l.caughtUp != nil {
		l.caughtUp()
	}
	return l.Local.ReadIndex(ctx)
}

// world is a history over storage in memory; the reader may get ConfigMaps.
func world(t *testing.T) (*Past, *storage.Store) {
	t.Helper()
	p, store, _ := worldOn(t)
	return p, store
}

func worldOn(t *testing.T) (*Past, *storage.Store, *lone) {
	t.Helper()
	log := &lone{Local: raftstoretest.NewLocal(state.Options{})}
	raise := command.Command{Ops: []command.Op{{Kind: command.SetFeatureLevel, Revision: raftstore.PurgesLevel}}}
	if _, err := log.Propose(t.Context(), raise); err != nil {
		t.Fatal(err)
	}
	store := storage.New(log, kinds.NewScheme(), kinds.All())
	kept, err := history.Open(history.Config{
		Dir: t.TempDir(), Source: log, Purges: storage.PurgesFolder(), Retention: time.Hour, SizeBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { kept.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	turns := NewTurns()
	store.KeepHistory(Share(kept, turns))
	return New(Source{
		Turns: turns,
		Kinds: named.Kinds{
			Storage: store, CustomKinds: func(context.Context) ([]*rest.Any, error) { return nil, nil },
			Custom: func(context.Context) (map[schema.GroupVersionResource]*storage.Table, error) { return nil, nil },
		},
		Authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetVerb() == "get" && (a.GetUser().GetName() == "admin" || a.GetResource() == "configmaps") {
				return authorizer.DecisionAllow, "", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		}),
	}), store, log
}

func allowed(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
	return authorizer.DecisionAllow, "", nil
}

// TestWithoutTheOthers: a server that does not reach the others tells what it has but for values, which may be purged since.
func TestWithoutTheOthers(t *testing.T) {
	p, store, log := worldOn(t)
	p.source.Authorizer = authorizer.AuthorizerFunc(allowed)
	put(t.Context(), t, store, "configmaps", configMap("c", "1"))
	from := store.Now()
	for store.Now().Sub(from) < 2*time.Millisecond { // history counts milliseconds
		runtime.Gosched()
	}
	put(t.Context(), t, store, "configmaps", configMap("c", "2"))
	q := Question{Question: named.Question{Kind: "cm", Namespace: "n", Name: "c"}}
	for _, cut := range []bool{false, true} {
		log.cut.Store(cut)
		answer, err := p.Answer(t.Context(), &user.DefaultInfo{Name: "admin"}, q)
		if err != nil || len(answer.Changes) != 2 || (len(answer.Changes[1].Fields) == 0) != cut || (answer.Changes[1].Unknown == unsure) != cut {
			t.Errorf("cut off %v: %v %+v", cut, err, answer)
		}
		d, err := p.Diff(t.Context(), &user.DefaultInfo{Name: "admin"}, Span{From: from, Namespace: "n"})
		if err != nil || len(d.Groups) != 1 {
			t.Fatalf("cut off %v: %v %+v", cut, err, d)
		}
		if c := d.Groups[0].Objects[0]; (len(c.Fields) == 0) != cut || (c.Unknown == unsure) != cut {
			t.Errorf("cut off %v: %+v", cut, c)
		}
	}
}

// TestAnotherTenantsNamespace: while somebody asks, the namespace is deleted, made anew, and is another tenant's: it is judged after that.
func TestAnotherTenantsNamespace(t *testing.T) {
	p, store, log := worldOn(t)
	p.source.Authorizer = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetNamespace() == "n" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	put(t.Context(), t, store, "configmaps", configMap("c", "former"))
	anew := func() {
		log.caughtUp = nil
		put(t.Context(), t, store, "namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	}
	log.caughtUp = anew
	d, err := p.Diff(t.Context(), &user.DefaultInfo{Name: "tenant"}, Span{Namespace: "n"})
	if err != nil || len(d.Groups) > 0 || log.caughtUp != nil {
		t.Errorf("diff: %v %+v", err, d)
	}
	log.caughtUp = func() {
		remove(t.Context(), t, store, "c")
		put(t.Context(), t, store, "configmaps", configMap("c", "former"))
		_, err := store.Table(corev1.SchemeGroupVersion.WithResource("namespaces")).Write(t.Context(), "", "n",
			func(*storage.View) (*storage.Change, error) { return &storage.Change{Delete: true}, nil })
		if err != nil {
			t.Error(err)
		}
		anew()
	}
	answer, err := p.Answer(t.Context(), &user.DefaultInfo{Name: "tenant"}, Question{Question: named.Question{Kind: "cm", Namespace: "n", Name: "c"}})
	if err == nil && len(answer.Changes) > 0 || log.caughtUp != nil {
		t.Errorf("history: %v %+v", err, answer)
	}
}

// put writes an object.
func put(ctx context.Context, t *testing.T, store *storage.Store, plural string, o rest.Object) {
	t.Helper()
	o.SetUID(types.UID(plural + o.GetName()))
	_, err := store.Table(corev1.SchemeGroupVersion.WithResource(plural)).Write(ctx, o.GetNamespace(), o.GetName(),
		func(*storage.View) (*storage.Change, error) { return &storage.Change{Object: o}, nil })
	if err != nil {
		t.Fatal(err)
	}
}

// TestAFormerNamespace: who may get objects in a namespace is not told what was in a former one of its name; who may everywhere is.
func TestAFormerNamespace(t *testing.T) {
	p, store := world(t)
	p.source.Authorizer = authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetUser().GetName() == "admin" || a.GetNamespace() == "n" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
	put(t.Context(), t, store, "configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}, Data: map[string]string{"a": "former"}})
	put(t.Context(), t, store, "namespaces", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	put(t.Context(), t, store, "configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}, Data: map[string]string{"a": "now"}})
	q := Question{Question: named.Question{Kind: "cm", Namespace: "n", Name: "c"}}
	for caller, want := range map[string]int{"admin": 2, "tenant": 1} {
		answer, err := p.Answer(t.Context(), &user.DefaultInfo{Name: caller}, q)
		if err != nil || len(answer.Changes) != want {
			t.Errorf("%s: %v %+v", caller, err, answer)
		}
	}
	table := store.Table(corev1.SchemeGroupVersion.WithResource("configmaps"))
	exact := storage.Exactly(t.Context())
	for name, ctx := range map[string]context.Context{
		"nobody asked": exact, "not everywhere": storage.WithFormer(exact, func(context.Context) bool { return false }),
	} {
		if got, err := table.Get(ctx, "n", "c", "1"); !apierrors.IsResourceExpired(err) {
			t.Errorf("%s: GET %v %v", name, got, err)
		}
		list, err := table.List(ctx, storage.ListOptions{Selection: storage.Selection{Namespace: "n"}, ResourceVersion: "1", Match: metav1.ResourceVersionMatchExact})
		if !apierrors.IsResourceExpired(err) {
			t.Errorf("%s: LIST %v %v", name, list, err)
		}
	}
	all := storage.WithFormer(exact, func(context.Context) bool { return true })
	if got, err := table.Get(all, "n", "c", "1"); err != nil || got.Object().(*corev1.ConfigMap).Data["a"] != "former" {
		t.Errorf("who may: %v", err)
	}
}

// TestNoHistory: a server that keeps none keeps no former files either.
func TestNoHistory(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
		t.Fatal(err)
	}
	c := Config{set: true, SizeMiB: sizeMiBMin}
	if h, err := c.Open(dir, history.Config{}); h != nil || err != nil {
		t.Fatal(h, err)
	}
	if _, err := os.Stat(filepath.Join(dir, folder)); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

// TestCausesOfOthers: of a cause that the caller may not get its kind is told, and no more.
func TestCausesOfOthers(t *testing.T) {
	p, store := world(t)
	put(storage.WithOrigin(t.Context(), storage.Origin{User: "alice"}), t, store, "nodes", &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}})
	loop := storage.WithOrigin(t.Context(), storage.Origin{User: "loop", CauseUID: "nodesa", CauseRevision: 1})
	put(loop, t, store, "configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c"}})
	q := Question{Question: named.Question{Kind: "cm", Namespace: "n", Name: "c"}}
	for caller, want := range map[string]string{"admin": "Node/a created alice 1", "reader": "Node/   0"} {
		answer, err := p.Answer(t.Context(), &user.DefaultInfo{Name: caller}, q)
		if err != nil || len(answer.Changes) != 1 || answer.Changes[0].By != "loop" || answer.Changes[0].Time.IsZero() {
			t.Fatalf("%s: %v %+v", caller, err, answer)
		}
		c := answer.Changes[0].Cause
		if got := strings.Join([]string{c.Object.String(), c.Did, c.By, string(rune('0' + c.ResourceVersion))}, " "); got != want {
			t.Errorf("%s: got %q, want %q", caller, got, want)
		}
	}
	q.Kind, q.Name = "node", "a"
	if _, err := p.Answer(t.Context(), &user.DefaultInfo{Name: "reader"}, q); !apierrors.IsForbidden(err) {
		t.Errorf("the reader gets a node's past: %v", err)
	}
	if _, err := p.At(t.Context(), time.Now().Add(time.Hour)); !apierrors.IsBadRequest(err) {
		t.Errorf("the future: %v", err)
	}
	if _, err := p.At(t.Context(), time.Unix(1, 0)); !apierrors.IsResourceExpired(err) {
		t.Errorf("before history: %v", err)
	}
	if now, err := p.At(t.Context(), time.Now()); err != nil || now.ResourceVersion != 2 {
		t.Errorf("now: %v %+v", err, now)
	}
}
