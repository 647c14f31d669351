package hostfirewall

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
)

// kernel stands in for nftables.
type kernel struct {
	mu      sync.Mutex
	open    []Port
	applied int
	refuses bool
	gone    bool
	// asked is called with each list, before it is taken.
	asked func()
}

func (k *kernel) Apply(_ []netip.Prefix, open []Port) error {
	if k.asked != nil {
		k.asked()
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.refuses {
		return errors.New("no room")
	}
	k.open, k.gone = open, false
	k.applied++
	return nil
}

func (k *kernel) Intact() (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return !k.gone, nil
}

func (k *kernel) Exists() (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.applied > 0, nil
}

func (k *kernel) set(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
}

func (k *kernel) has(t *testing.T, want ...Port) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.Equal(k.open, want) {
		t.Errorf("open: %v, want %v", k.open, want)
	}
}

// newWatch registers with informers of the client, which have not started.
func newWatch(client kubernetes.Interface, k *kernel, own func() []netip.Addr) (w *Watch, everywhere, here informers.SharedInformerFactory) {
	everywhere, here = informers.NewSharedInformerFactory(client, 0), informers.NewSharedInformerFactory(client, 0)
	return New(Config{
		Everywhere: everywhere, Here: here, Own: own, Pods: func() []netip.Prefix { return nil },
		Listening: []Port{TCP(10250)}, Network: k, Logger: slog.New(slog.DiscardHandler),
	}), everywhere, here
}

// TestOneListAtATime: from where a list is computed until the kernel has it nobody computes another one.
func TestOneListAtATime(t *testing.T) {
	var w *Watch
	steps := 0
	alone := func() {
		if steps++; w.applying.TryLock() {
			w.applying.Unlock()
			t.Errorf("step %d of telling a list leaves others the way", steps)
		}
	}
	k := &kernel{asked: alone}
	w, _, _ = newWatch(fake.NewClientset(), k, func() []netip.Addr { alone(); return nil })
	w.Begin()
	if err := w.Thing().PutBack(t.Context()); err != nil || !w.apply(t.Context()) {
		t.Error(err)
	}
	if steps != 5 { // the first list is of no objects
		t.Errorf("%d steps", steps)
	}
}

// TestWatch: what pods reach follows the objects; the kernel's refusal is tried again, and rules that are gone come back.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		client := fake.NewClientset()
		k := &kernel{}
		w, everywhere, here := newWatch(client, k, func() []netip.Addr { return nil })
		whole := func(want bool, when string) {
			if whole, err := w.Thing().Whole(); whole != want || err != nil {
				t.Errorf("%s: whole %v, %v", when, whole, err)
			}
		}
		w.Begin()
		k.set(func() { k.gone = true })
		whole(true, "before the cluster's Services are known")
		k.has(t, TCP(10250))
		k.set(func() { k.open = []Port{TCP(1)} })
		w.Begin() // finds rules
		k.has(t, TCP(1))
		everywhere.StartWithContext(ctx)
		here.StartWithContext(ctx)
		var children sync.WaitGroup
		children.Go(func() { w.Run(ctx) })
		pass := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		pass(time.Second)
		k.has(t, TCP(10250))

		w.OpenGateways([]int{8080})
		pass(2 * settleTime)
		k.has(t, TCP(8080), TCP(10250))

		k.set(func() { k.refuses = true })
		pod := podWith(true, corev1.ContainerPort{ContainerPort: 9100})
		pod.Name, pod.Namespace = "exporter", "default"
		if _, err := client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		k.has(t, TCP(8080), TCP(10250))
		k.set(func() { k.refuses = false })
		pass(2 * retryInterval)
		k.has(t, TCP(8080), TCP(9100), TCP(10250))

		k.set(func() { k.gone, k.applied = true, 0 })
		whole(false, "somebody removed the rules")
		if err := w.Thing().PutBack(ctx); err != nil {
			t.Error(err)
		}
		whole(true, "put back")
		k.set(func() {
			if k.applied != 1 {
				t.Errorf("applied %d times after somebody removed the rules, want once", k.applied)
			}
		})
		cancel()
		children.Wait()
		everywhere.Shutdown()
		here.Shutdown()
	})
}
