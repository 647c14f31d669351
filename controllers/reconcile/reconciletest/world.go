package reconciletest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
)

// World is one cluster state with its clients.
type World struct {
	Client    *fake.Clientset
	Informers informers.SharedInformerFactory
	Events    *Events
	// Numbers count what loops do; nil, unless a test sets it, counts nothing.
	Numbers *numbers.Ledger

	t      testing.TB
	ctx    context.Context
	mu     sync.Mutex
	seq    int
	writes []write
	served map[schema.GroupVersionResource]cache.SharedIndexInformer
	gone   map[schema.GroupVersionResource][]runtime.Object        // what was deleted, in order
	kinds  map[schema.GroupVersionResource]schema.GroupVersionKind // of what there was

	intercept func(write string) Outcome
	watches   map[*versioned]bool
	held      chan struct{} // closed by Release; nil unless Hold has been called

	informersCtx context.Context
	endInformers func()
}

// write is one call that writes, as "verb resource/sub ns/name".
type write struct {
	text    string
	changed bool // whether the API accepted it and anything differs since
}

// New makes an empty world; call Start once the informers of interest exist.
func New(t testing.TB) *World {
	ctx, cancel := context.WithCancel(t.Context())
	w := &World{t: t, ctx: ctx, Client: fake.NewSimpleClientset(), Events: &Events{}}
	w.served = map[schema.GroupVersionResource]cache.SharedIndexInformer{}
	w.gone = map[schema.GroupVersionResource][]runtime.Object{}
	w.kinds, w.watches = map[schema.GroupVersionResource]schema.GroupVersionKind{}, map[*versioned]bool{}
	w.beginInformers()
	w.Client.PrependReactor("create", "*", w.onCreate)
	w.Client.PrependReactor("update", "*", w.onUpdate)
	w.Client.PrependReactor("patch", "*", w.onPatch)
	w.Client.PrependReactor("delete", "*", w.onDelete)
	w.Client.PrependReactor("list", "*", w.onList)
	w.Client.PrependReactor("*", "*", w.onWrite)
	w.Client.PrependWatchReactor("*", w.onWatch)
	t.Cleanup(func() {
		cancel()
		w.endInformers()
	})
	return w
}

// beginInformers makes a factory of informers, which run until endInformers is called.
func (w *World) beginInformers() {
	ctx, cancel := context.WithCancel(w.ctx)
	factory := informers.NewSharedInformerFactory(w.Client, 0)
	w.Informers, w.informersCtx = factory, ctx
	w.endInformers = func() {
		cancel()
		factory.Shutdown()
	}
}

// Env is what the world gives a controller. Tests may add clients that the world has not.
func (w *World) Env() reconcile.Env {
	return reconcile.Env{Client: w.Client, Caches: w, Events: w.Events, Numbers: w.Numbers}
}

// Serve adds an informer of objects that the world's clientset does not have. It has to run already.
func (w *World) Serve(resource schema.GroupVersionResource, informer cache.SharedIndexInformer) {
	w.served[resource] = informer
}

// Informer implements reconcile.Caches. Those of some objects only hold all of their kind.
func (w *World) Informer(resource schema.GroupVersionResource, _ string) cache.SharedIndexInformer {
	if informer, served := w.served[resource]; served {
		return informer
	}
	informer, err := w.Informers.ForResource(resource)
	if err != nil {
		return nil
	}
	return informer.Informer()
}

// Run starts a controller beside the test; it ends with the test.
func (w *World) Run(c reconcile.Controller) { w.RunIn(w.Env(), c) }

// RunIn is Run with another Env than the world's own.
func (w *World) RunIn(env reconcile.Env, c reconcile.Controller) {
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx, env) }()
	w.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("controller returned %v", err)
		}
	})
	synctest.Wait()
	w.Start()
	synctest.Wait()
}

// Warm makes the informers that a controller reads, without running it.
func (w *World) Warm(controllers ...reconcile.Controller) {
	for _, c := range controllers {
		for _, read := range c.Reads {
			d := read.Declaration()
			if err := d.Prepare(w.Informer(d.Resource, d.Only)); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// Start starts the informers that exist by now.
func (w *World) Start() { w.Informers.StartWithContext(w.informersCtx) }

// Context ends with the test.
func (w *World) Context() context.Context { return w.ctx }

// Settle waits until everything has reacted to everything.
func (w *World) Settle() {
	for range 20 {
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
}

// Writes returns the writes since the last call, as "verb resource/sub ns/name", even those that the API refused.
func (w *World) Writes() []string {
	return w.take(func(write) bool { return true })
}

// Changes is Writes without those that changed nothing. Tests of what a controller has done compare these: one whose
// cache does not show its own write yet may rightly repeat it, and whether it does so differs from run to run.
func (w *World) Changes() []string {
	return w.take(func(x write) bool { return x.changed })
}

func (w *World) take(keep func(write) bool) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, x := range w.writes {
		if keep(x) {
			out = append(out, x.text)
		}
	}
	w.writes = nil
	return out
}

// note keeps a write that is about to be tried; the caller holds mu until changed or its end.
func (w *World) note(a ktesting.Action, name string) {
	w.writes = append(w.writes, write{text: textOf(a, name)})
}

func textOf(a ktesting.Action, name string) string {
	resource := a.GetResource().Resource
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	return fmt.Sprintf("%s %s %s/%s", a.GetVerb(), resource, a.GetNamespace(), name)
}

// changed marks the write that was noted last, unless it failed, and returns the error.
func (w *World) changed(err error) error {
	if n := len(w.writes); err == nil && n > 0 {
		w.writes[n-1].changed = true
	}
	return err
}

// next returns a fresh number, which serves as uid and as resourceVersion.
func (w *World) next() int {
	w.seq++
	return w.seq
}

// Add puts an object into the world as a user would.
func Add[T runtime.Object](w *World, obj T) T {
	w.t.Helper()
	w.mu.Lock()
	m := must(meta.Accessor(obj))
	w.born(m)
	w.mu.Unlock()
	if err := w.Client.Tracker().Add(obj.DeepCopyObject()); err != nil {
		w.t.Fatalf("add %s: %v", m.GetName(), err)
	}
	return obj
}

// born gives a new object what an API server would.
func (w *World) born(m metav1.Object) {
	n := w.next()
	w.resourceOf(m.(runtime.Object))
	if m.GetName() == "" {
		m.SetName(fmt.Sprintf("%s%05d", m.GetGenerateName(), n))
	}
	if m.GetUID() == "" {
		m.SetUID(types.UID(fmt.Sprintf("uid-%05d", n)))
	}
	if m.GetCreationTimestamp().Time.IsZero() {
		m.SetCreationTimestamp(metav1.NewTime(time.Now()))
	}
	m.SetGeneration(1)
	m.SetResourceVersion(strconv.Itoa(n))
	if p, ok := m.(*corev1.Pod); ok && p.Status.Phase == "" {
		p.Status.Phase = corev1.PodPending
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Pods lists all pods of a namespace, sorted as the API does.
func (w *World) Pods(namespace string) []corev1.Pod {
	w.t.Helper()
	kind := corev1.SchemeGroupVersion.WithKind("Pod")
	list, err := w.Client.Tracker().List(corev1.SchemeGroupVersion.WithResource("pods"), kind, namespace)
	if err != nil {
		w.t.Fatal(err)
	}
	return list.(*corev1.PodList).Items
}
