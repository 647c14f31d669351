package services

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/net/network/upkeep"
	"github.com/setpoint-io/setpoint/internal/reserved"
)

// table is a network that remembers what leads where, and how it was told.
type table struct {
	mu      sync.Mutex
	now     map[network.ServiceAddress]network.Service
	calls   []string
	fail    error
	damaged bool
}

func (n *table) Replace(all []network.Service) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, "replace")
	if n.fail == nil {
		n.now, n.damaged = map[network.ServiceAddress]network.Service{}, false
		n.put(all)
	}
	return n.fail
}

func (n *table) Change(now []network.Service, gone []network.ServiceAddress) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.calls = append(n.calls, "change")
	if n.fail == nil {
		for _, address := range gone {
			delete(n.now, address)
		}
		n.put(now)
	}
	return n.fail
}

func (n *table) put(all []network.Service) {
	for _, s := range all {
		n.now[s.ServiceAddress] = s
	}
}

func (n *table) Damaged() (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.damaged, nil
}

func (n *table) set(fail error, damaged bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fail, n.damaged = fail, damaged
}

func (n *table) take() (calls []string, now []network.Service) {
	n.mu.Lock()
	defer n.mu.Unlock()
	calls, n.calls = n.calls, nil
	now = slices.SortedFunc(maps.Values(n.now), func(a, b network.Service) int { return a.Address.Compare(b.Address) })
	return calls, now
}

// world is a Watch in a bubble.
type world struct {
	t      *testing.T
	client *fake.Clientset
	net    *table
	thing  upkeep.Thing
	book   *reserved.Book
	// refused is what was told of Services that are not served, since it was last looked at.
	refused []string
}

func inBubble(t *testing.T, test func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, client: fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: here.Node}}), net: &table{}, book: reserved.New()}
		ctx, cancel := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(w.client, 0)
		run, thing := Watch(Config{
			NodeName: here.Node, Informers: factory, Nodes: factory, Network: w.net, Reserved: w.book, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
			Refused: func(service types.NamespacedName, why string) {
				w.refused = append(w.refused, service.String()+": "+why)
			},
		})
		w.thing = thing
		if whole, err := thing.Whole(); !whole || err != nil {
			t.Errorf("before there is anything: whole %v, %v", whole, err)
		}
		var children sync.WaitGroup
		children.Go(func() { run(ctx) })
		defer children.Wait()
		defer factory.Shutdown()
		defer cancel()
		factory.StartWithContext(ctx)
		w.after(time.Second) // informers say ten times a second whether they have all
		w.expect("an empty cluster", []string{"replace"})
		test(w)
	})
}

func (w *world) after(d time.Duration) { <-time.After(d) }

func (w *world) expect(what string, calls []string, want ...network.Service) {
	w.t.Helper()
	synctest.Wait()
	gotCalls, got := w.net.take()
	if diff := cmp.Diff(calls, gotCalls, cmpopts.EquateEmpty()); diff != "" {
		w.t.Errorf("%s: calls: %s", what, diff)
	}
	if diff := cmp.Diff(want, got, compareAddresses, cmpopts.EquateEmpty()); diff != "" {
		w.t.Errorf("%s: %s", what, diff)
	}
}

// put creates the object or replaces it.
func (w *world) put(object any) {
	w.t.Helper()
	var err error
	ctx := w.t.Context()
	switch o := object.(type) {
	case *corev1.Service:
		if _, err = w.client.CoreV1().Services(o.Namespace).Update(ctx, o.DeepCopy(), metav1.UpdateOptions{}); err != nil {
			_, err = w.client.CoreV1().Services(o.Namespace).Create(ctx, o.DeepCopy(), metav1.CreateOptions{})
		}
	case *discoveryv1.EndpointSlice:
		if _, err = w.client.DiscoveryV1().EndpointSlices(o.Namespace).Update(ctx, o.DeepCopy(), metav1.UpdateOptions{}); err != nil {
			_, err = w.client.DiscoveryV1().EndpointSlices(o.Namespace).Create(ctx, o.DeepCopy(), metav1.CreateOptions{})
		}
	case *corev1.Node:
		_, err = w.client.CoreV1().Nodes().Update(ctx, o.DeepCopy(), metav1.UpdateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestTheNetworkIsToldOfChangesOnly(t *testing.T) {
	inBubble(t, func(w *world) {
		slice := sliceOf("x", "a", 8080, ready("10.42.0.3"))
		w.put(serviceOf("a", "10.96.0.9"))
		w.put(slice)
		w.after(settleTime)
		w.expect("two changes together", []string{"change"}, leads("10.96.0.9:80", "10.42.0.3:8080"))

		slice.Labels["other"] = "label"
		w.put(slice)
		w.after(settleTime)
		w.expect("nothing for the network", nil, leads("10.96.0.9:80", "10.42.0.3:8080"))

		w.put(serviceOf("a", "10.96.0.9", nodePort))
		w.after(settleTime)
		w.expect("a node port", []string{"change"}, with(leads("0.0.0.0:30080", "10.42.0.3:8080"), isExternal), leads("10.96.0.9:80", "10.42.0.3:8080"))

		if err := w.client.CoreV1().Services("ns").Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.after(settleTime)
		w.expect("deleted", []string{"change"})
		w.after(time.Hour)
		w.expect("quiet", nil)
	})
}

func TestAfterAFailureAllIsSetAgain(t *testing.T) {
	inBubble(t, func(w *world) {
		w.put(serviceOf("a", "10.96.0.9"))
		w.after(settleTime)
		w.expect("one", []string{"change"}, leads("10.96.0.9:80"))
		w.net.set(errors.New("busy"), false)
		w.put(sliceOf("x", "a", 8080, ready("10.42.0.4")))
		w.after(settleTime)
		w.expect("a network that fails", []string{"change"}, leads("10.96.0.9:80"))
		w.net.set(nil, false)
		w.after(retryInterval + settleTime)
		w.expect("again", []string{"replace"}, leads("10.96.0.9:80", "10.42.0.4:8080"))
		w.net.set(nil, true)
		w.after(time.Hour)
		w.expect("somebody flushed the rules: the watch does not look", nil, leads("10.96.0.9:80", "10.42.0.4:8080"))
		if err := w.thing.PutBack(w.t.Context()); err != nil {
			t.Error(err)
		}
		w.expect("put back", []string{"replace"}, leads("10.96.0.9:80", "10.42.0.4:8080"))
		if whole, err := w.thing.Whole(); !whole || err != nil {
			t.Errorf("put back, and whole %v, %v", whole, err)
		}
	})
}

func TestTheZoneOfTheNodeCounts(t *testing.T) {
	inBubble(t, func(w *world) {
		w.put(serviceOf("a", "10.96.0.9"))
		w.put(sliceOf("x", "a", 8080, hint("", "z1", ready("10.42.0.3")), hint("", "z2", ready("10.42.1.3"))))
		w.after(settleTime)
		w.expect("in no zone", []string{"change"}, leads("10.96.0.9:80", "10.42.0.3:8080", "10.42.1.3:8080"))
		w.put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: here.Node, Labels: map[string]string{corev1.LabelTopologyZone: "z2"}}})
		w.after(settleTime)
		w.expect("in a zone", []string{"change"}, leads("10.96.0.9:80", "10.42.1.3:8080"))
	})
}

func TestTheOldestServiceHasTheAddress(t *testing.T) {
	name := func(n string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: n} }
	old := entry{planned{addresses: []network.Service{leads("203.0.113.5:80", "10.42.0.3:80")}}, 1}
	young := entry{planned{addresses: []network.Service{leads("203.0.113.5:80", "10.42.0.4:80")}}, 2}
	b := newBook()
	b.put(name("young"), young)
	b.put(name("old"), old)
	address := old.addresses[0].ServiceAddress
	if got, ok := b.at(address); !ok || !got.Equal(old.addresses[0]) {
		t.Errorf("of two: %v", got)
	}
	b.put(name("old"), entry{})
	if got, ok := b.at(address); !ok || !got.Equal(young.addresses[0]) {
		t.Errorf("the other is gone: %v", got)
	}
	if touched := b.put(name("young"), entry{}); len(touched) != 1 || len(b.all()) != 0 || len(b.holders) != 0 {
		t.Errorf("both are gone: %v", touched)
	}
}

// TestRulesArePutBackAtOnce where somebody asks for it.
func TestRulesArePutBackAtOnce(t *testing.T) {
	inBubble(t, func(w *world) {
		w.net.set(nil, true)
		if whole, err := w.thing.Whole(); whole || err != nil {
			t.Errorf("damaged, and whole %v, %v", whole, err)
		}
		if err := w.thing.PutBack(w.t.Context()); err != nil {
			t.Error(err)
		}
		w.expect("put back", []string{"replace"})
		w.net.set(errors.New("refused"), true)
		if err := w.thing.PutBack(w.t.Context()); err == nil {
			t.Error("put back, and the network has refused it")
		}
		w.expect("one try for one question", []string{"replace"})
	})
}
