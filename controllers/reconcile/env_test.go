package reconcile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
)

// inFactory hands out the informers of a factory.
type inFactory struct {
	informers.SharedInformerFactory
}

func (f inFactory) Informer(resource schema.GroupVersionResource, _ string) cache.SharedIndexInformer {
	informer, err := f.ForResource(resource)
	if err != nil {
		return nil
	}
	return informer.Informer()
}

// start runs a controller over the objects, until body has returned.
func start(t *testing.T, c Controller, pods ...*corev1.Pod) error {
	t.Helper()
	client := fake.NewClientset()
	for _, p := range pods {
		if err := client.Tracker().Add(p); err != nil {
			t.Fatal(err)
		}
	}
	f := informers.NewSharedInformerFactory(client, 0)
	ctx, cancel := context.WithCancel(t.Context())
	defer f.Shutdown()
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx, Env{Client: client, Caches: inFactory{f}}) }()
	synctest.Wait()
	f.StartWithContext(ctx)
	synctest.Wait()
	cancel()
	return <-ended
}

func TestReadingWhatIsNotDeclaredFails(t *testing.T) {
	byNode := Index{Name: "node", Keys: func(o metav1.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }}
	const (
		pods  = "lazy-controller reads pods, which its Reads do not declare"
		index = "lazy-controller reads pods by the index node, which its Reads do not declare"
	)
	for _, c := range []struct {
		name  string
		reads []Read
		does  func(ctx context.Context, env *Env) error
		want  string
	}{
		{"get", []Read{Nodes}, func(_ context.Context, env *Env) error { _, err := Pods.From(env).Get(Key{}); return err }, pods},
		{"list", nil, func(_ context.Context, env *Env) error { _, err := Pods.From(env).List("", nil); return err }, pods},
		{"orphans", nil, func(_ context.Context, env *Env) error { _, err := Pods.From(env).Orphans("ns"); return err }, pods},
		{"source", nil, func(ctx context.Context, env *Env) error {
			return Run(ctx, Config{Sources: []Source{Self(Pods.From(env))}, Env: env})
		}, pods},
		{"filled", nil, func(ctx context.Context, env *Env) error {
			return Run(ctx, Config{Sources: []Source{Filled(Pods.From(env))}, Env: env})
		}, pods},
		{"index", []Read{Pods.By(ByController)}, func(_ context.Context, env *Env) error {
			_, err := Pods.From(env).ByIndex(byNode, "n")
			return err
		}, index},
		{"other names", []Read{Pods.Called("a")}, func(_ context.Context, env *Env) error {
			_, err := Pods.From(env).Get(Key{})
			return err
		}, pods},
		{"declared", []Read{Pods.By(byNode)}, func(_ context.Context, env *Env) error {
			_, err := Pods.From(env).ByIndex(byNode, "n")
			return err
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				err := start(t, Controller{Name: "lazy-controller", Reads: c.reads, Run: c.does})
				got, undeclared := "", (*UndeclaredError)(nil)
				if errors.As(err, &undeclared) {
					got = undeclared.Error()
				}
				if got != c.want {
					t.Errorf("got %v, want %s", err, c.want)
				}
			})
		})
	}
}

func TestNoCacheOfADeclaredKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		unknown := KindOf[*corev1.Pod](schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"})
		err := start(t, Controller{Name: "c", Reads: []Read{unknown.Called("x")}})
		if err == nil || err.Error() != "c: there is no cache of things.example.com called x" {
			t.Error(err)
		}
	})
}

func TestStartRefusesAnIncompleteEnv(t *testing.T) {
	if err := (Controller{}).Start(t.Context(), Env{}); !errors.Is(err, ErrEnv) {
		t.Error(err)
	}
}

func TestWhatACacheShows(t *testing.T) {
	pod := func(namespace, name, app string, owner ...metav1.OwnerReference) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, Labels: map[string]string{"app": app}, OwnerReferences: owner,
		}}
	}
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs", UID: "u", Controller: new(true)}
	synctest.Test(t, func(t *testing.T) {
		look := func(_ context.Context, key Key) (time.Duration, error) { return 0, nil }
		err := start(t, Controller{Name: "c", Reads: []Read{Pods.By(ByController)}, Run: func(ctx context.Context, env *Env) error {
			pods := Pods.From(env)
			err := Run(ctx, Config{Name: "c", Reconcile: look, Sources: []Source{Self(pods)}, Env: env})
			if got, err := pods.Get(Key{Namespace: "a", Name: "p"}); err != nil || got.Name != "p" {
				t.Errorf("Get: %v, %v", got, err)
			}
			if _, err := pods.Get(Key{Namespace: "a", Name: "q"}); !apierrors.IsNotFound(err) {
				t.Errorf("Get of what is not there: %v", err)
			}
			count := func(what string, want int) func([]*corev1.Pod, error) {
				return func(got []*corev1.Pod, err error) {
					if len(got) != want || err != nil {
						t.Errorf("%s: %d, %v, want %d", what, len(got), err, want)
					}
				}
			}
			count("all", 3)(pods.List("", nil))
			count("in a", 2)(pods.List("a", nil))
			count("web in a", 1)(pods.List("a", labels.SelectorFromSet(labels.Set{"app": "web"})))
			count("owned", 1)(pods.Owned(&metav1.ObjectMeta{UID: "u"}))
			count("orphans", 1)(pods.Orphans("a"))
			return err
		}}, pod("a", "p", "web"), pod("a", "o", "db", owner), pod("b", "p", "web"))
		if err != nil {
			t.Error(err)
		}
	})
}
