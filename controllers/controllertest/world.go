package controllertest

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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
)

// World is one cluster state with its clients.
type World struct {
	Client    *fake.Clientset
	Informers informers.SharedInformerFactory
	Events    *Events

	t      testing.TB
	ctx    context.Context
	mu     sync.Mutex
	seq    int
	writes []string
}

// New makes an empty world; call Start once the informers of interest exist.
func New(t testing.TB) *World {
	ctx, cancel := context.WithCancel(t.Context())
	w := &World{t: t, ctx: ctx, Client: fake.NewSimpleClientset(), Events: &Events{}}
	w.Informers = informers.NewSharedInformerFactory(w.Client, 0)
	w.Client.PrependReactor("create", "*", w.onCreate)
	w.Client.PrependReactor("update", "*", w.onUpdate)
	w.Client.PrependReactor("patch", "*", w.onPatch)
	w.Client.PrependReactor("delete", "*", w.onDelete)
	t.Cleanup(func() {
		cancel()
		w.Informers.Shutdown()
	})
	return w
}

// Run starts a controller beside the test; it ends with the test.
func (w *World) Run(run func(ctx context.Context) error) {
	ctx, cancel := context.WithCancel(w.ctx)
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
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

// Start starts the informers that exist by now.
func (w *World) Start() { w.Informers.StartWithContext(w.ctx) }

// Context ends with the test.
func (w *World) Context() context.Context { return w.ctx }

// Settle waits until everything has reacted to everything.
func (w *World) Settle() {
	for range 20 {
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
	}
}

// Writes returns the writes since the last call, as "verb resource/sub ns/name".
func (w *World) Writes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := w.writes
	w.writes = nil
	return out
}

func (w *World) note(a ktesting.Action, name string) {
	resource := a.GetResource().Resource
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	w.writes = append(w.writes, fmt.Sprintf("%s %s %s/%s", a.GetVerb(), resource, a.GetNamespace(), name))
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
	list, err := w.Client.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return list.Items
}
