package policy

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/agent/net/policy/plan"
)

// fakeNetwork remembers what it was told last.
type fakeNetwork struct {
	mu        sync.Mutex
	connected []Sandbox
	table     *plan.Table
	applied   int
	cleared   int
	fails     error
	damaged   bool
}

func (n *fakeNetwork) Apply(table *plan.Table) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.fails != nil {
		return n.fails
	}
	n.applied++
	n.table, n.damaged = table, false
	return nil
}

func (n *fakeNetwork) Clear() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cleared++
	return nil
}

func (n *fakeNetwork) Intact() (bool, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.damaged, nil
}

func (n *fakeNetwork) damage() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.damaged = true
}

// recover ends that it fails.
func (n *fakeNetwork) recover() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.fails = nil
}

func (n *fakeNetwork) Connected(context.Context) ([]Sandbox, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.connected, nil
}

func (n *fakeNetwork) disconnect() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.connected = nil
}

// passes tells what happens to a packet now.
func (n *fakeNetwork) passes(from, to string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.table == nil || n.table.Allows(plan.Packet{From: netip.MustParseAddr(from), To: netip.MustParseAddr(to), Protocol: 6, Port: 80})
}

const (
	webAddress, friendAddress, strangerAddress = "10.42.0.2", "10.42.1.2", "10.42.1.3"
)

func podOf(name, address string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Labels: map[string]string{"app": name}},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning, PodIPs: []corev1.PodIP{{IP: address}}},
	}
}

func sandboxOf(name, address string) Sandbox {
	return Sandbox{Namespace: "ns", UID: types.UID(name), Labels: map[string]string{"app": name, "io.kubernetes.pod.name": name}, Addresses: []netip.Addr{netip.MustParseAddr(address)}}
}

// fromFriends lets only friends reach web.
func fromFriends() *networkingv1.NetworkPolicy {
	labelled := func(app string) metav1.LabelSelector {
		return metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "from-friends", ResourceVersion: "7"},
		Spec: networkingv1.NetworkPolicySpec{PodSelector: labelled("web"), PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: []networkingv1.NetworkPolicyPeer{{PodSelector: new(labelled("friend"))}}}}},
	}
}

// node is a running Watch in a bubble.
type node struct {
	*testing.T
	client  *fake.Clientset
	network *fakeNetwork
	watch   *Watch
}

// inBubble checks a node that runs; prepare sees it before.
func inBubble(t *testing.T, network *fakeNetwork, objects []runtime.Object, check func(*node), prepare ...func(*node)) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{T: t, client: fake.NewClientset(objects...), network: network}
		ctx, cancel := context.WithCancel(t.Context())
		n.watch = New(Config{Client: n.client, Network: network, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
		for _, f := range prepare {
			f(n)
		}
		var children sync.WaitGroup
		children.Go(func() { n.watch.Run(ctx) })
		defer children.Wait()
		defer cancel()
		check(n)
	})
}

// settle lets time pass until changes have arrived: informers say ten times a second whether they have all.
func (n *node) settle() {
	time.Sleep(time.Second)
	synctest.Wait()
}

func (n *node) create(p *networkingv1.NetworkPolicy) {
	n.Helper()
	if _, err := n.client.NetworkingV1().NetworkPolicies(p.Namespace).Create(n.Context(), p, metav1.CreateOptions{}); err != nil {
		n.Fatal(err)
	}
}

func (n *node) expect(what string, friend, stranger bool) {
	n.Helper()
	if f, s := n.network.passes(friendAddress, webAddress), n.network.passes(strangerAddress, webAddress); f != friend || s != stranger {
		n.Errorf("%s: a friend passes %v, want %v; a stranger %v, want %v", what, f, friend, s, stranger)
	}
}

func world() []runtime.Object {
	return []runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}}, podOf("web", webAddress), podOf("friend", friendAddress), podOf("stranger", strangerAddress)}
}

func TestPoliciesAreFollowed(t *testing.T) {
	network := &fakeNetwork{connected: []Sandbox{sandboxOf("web", webAddress)}}
	inBubble(t, network, world(), func(n *node) {
		n.settle()
		for _, a := range n.client.Actions() {
			if a.GetResource().Resource != "networkpolicies" {
				n.Errorf("without policies somebody asked for %s", a.GetResource().Resource)
			}
		}
		if network.applied != 0 || network.cleared != 1 {
			n.Errorf("applied %d, cleared %d", network.applied, network.cleared)
		}
		n.create(fromFriends())
		n.settle()
		n.expect("the first policy", true, false)

		changed := podOf("stranger", strangerAddress)
		changed.Labels["app"] = "friend"
		if _, err := n.client.CoreV1().Pods("ns").Update(n.Context(), changed, metav1.UpdateOptions{}); err != nil {
			n.Fatal(err)
		}
		n.settle()
		n.expect("a stranger becomes a friend", true, true)

		if err := n.client.CoreV1().Pods("ns").Delete(n.Context(), "friend", metav1.DeleteOptions{}); err != nil {
			n.Fatal(err)
		}
		n.settle()
		n.expect("the friend is gone", false, true)

		if err := n.client.NetworkingV1().NetworkPolicies("ns").Delete(n.Context(), "from-friends", metav1.DeleteOptions{}); err != nil {
			n.Fatal(err)
		}
		n.settle()
		n.expect("no policy any more", true, true)
	})
}

func TestAPodHasItsRulesBeforeItIsConnected(t *testing.T) {
	network := &fakeNetwork{}
	objects := append(world()[:1], world()[2:]...) // the pod itself is not known yet
	inBubble(t, network, append(objects, fromFriends()), func(n *node) {
		n.settle()
		if err := n.watch.Admit(n.Context(), sandboxOf("web", webAddress)); err != nil {
			n.Fatal(err)
		}
		n.expect("admitted", true, false)
		if err := n.watch.Admit(n.Context(), sandboxOf("other", webAddress)); err != nil {
			n.Fatal(err)
		}
		n.expect("another pod took the address over", true, true)
	})
}

// TestAPolicyThatIsNotSeenYet: a pod that was made after a policy waits until this node knows the policy.
func TestAPolicyThatIsNotSeenYet(t *testing.T) {
	network := &fakeNetwork{}
	var late *watch.FakeWatcher
	inBubble(t, network, world(), func(n *node) {
		n.settle()
		n.create(fromFriends())
		admitted := make(chan error, 1)
		go func() { admitted <- n.watch.Admit(n.Context(), sandboxOf("web", webAddress)) }()
		n.settle()
		if len(admitted) > 0 {
			n.Fatal("the pod was connected before its policy was known")
		}
		late.Add(fromFriends())
		if err := <-admitted; err != nil {
			n.Fatal(err)
		}
		n.expect("admitted", true, false)
		go func() { admitted <- n.watch.Admit(n.Context(), sandboxOf("web", webAddress)) }()
		if err := <-admitted; err != nil {
			n.Errorf("a second time: %v", err)
		}
		newer := fromFriends()
		newer.ResourceVersion = "8"
		if n.watch.knows([]networkingv1.NetworkPolicy{*newer}) {
			n.Error("a newer version counts as known")
		}
	}, func(n *node) {
		late = watch.NewFake()
		n.client.PrependWatchReactor("networkpolicies", func(clienttesting.Action) (bool, watch.Interface, error) { return true, late, nil })
	})
}

func TestWhereRulesCannotBeMadeNoPodIsConnected(t *testing.T) {
	network := &fakeNetwork{fails: errors.New("no nftables")}
	inBubble(t, network, append(world(), fromFriends()), func(n *node) {
		n.settle()
		if err := n.watch.Admit(n.Context(), sandboxOf("web", webAddress)); !errors.Is(err, network.fails) {
			n.Errorf("admitted: %v", err)
		}
		network.recover()
		time.Sleep(retryInterval)
		n.settle()
		n.expect("tried again", true, false)
	})
}

func TestTheLastKnownStateHoldsWhileTheAPIIsAway(t *testing.T) {
	network := &fakeNetwork{}
	inBubble(t, network, append(world(), fromFriends()), func(n *node) {
		n.settle()
		n.client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("away") })
		if err := n.watch.Admit(n.Context(), sandboxOf("web", webAddress)); err != nil {
			n.Fatal(err)
		}
		n.expect("admitted", true, false)
	})
	fresh := &fakeNetwork{connected: []Sandbox{sandboxOf("web", webAddress)}}
	synctest.Test(t, func(t *testing.T) { // an agent that starts
		client := fake.NewClientset()
		client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("away") })
		ctx, cancel := context.WithCancel(t.Context())
		w := New(Config{Client: client, Network: fresh, Logger: slog.New(slog.DiscardHandler)})
		done := make(chan struct{})
		go func() { w.Run(ctx); close(done) }()
		if err := w.Admit(ctx, sandboxOf("other", friendAddress)); !errors.Is(err, errUnknown) {
			t.Errorf("a pod of which nothing is known was admitted: %v", err)
		}
		if fresh.applied+fresh.cleared != 0 {
			t.Error("what the former agent left was changed")
		}
		cancel()
		<-done
	})
}

func TestRulesThatSomebodyRemovedComeBack(t *testing.T) {
	network := &fakeNetwork{connected: []Sandbox{sandboxOf("web", webAddress)}}
	inBubble(t, network, append(world(), fromFriends()), func(n *node) {
		n.settle()
		n.expectWhole(true, "in force")
		before := network.applied
		network.damage()
		n.expectWhole(false, "damaged")
		if err := n.watch.Thing().PutBack(n.Context()); err != nil || network.applied != before+1 {
			n.Errorf("applied %d times more: %v", network.applied-before, err)
		}
		n.expectWhole(true, "put back")
	})
}

// TestRulesThatWereNeverThereAreNotGone: until they are in force for the first time nobody is told that somebody has taken them away.
func TestRulesThatWereNeverThereAreNotGone(t *testing.T) {
	network := &fakeNetwork{fails: errors.New("no nftables"), damaged: true} // as where there is no table yet
	inBubble(t, network, append(world(), fromFriends()), func(n *node) {
		n.settle()
		if !n.watch.started.Load() {
			n.Error("the policy is not followed")
		}
		n.expectWhole(true, "never in force")
		network.recover()
		time.Sleep(retryInterval)
		n.settle()
		network.damage()
		n.expectWhole(false, "damaged")
	})
}

func (n *node) expectWhole(want bool, when string) {
	n.Helper()
	if whole, err := n.watch.Thing().Whole(); whole != want || err != nil {
		n.Errorf("%s: whole %v, %v", when, whole, err)
	}
}

func TestWhatIsKeptOfPods(t *testing.T) {
	full := podOf("web", webAddress)
	full.Annotations = map[string]string{"note": "long"}
	full.Spec.Containers = []corev1.Container{{Name: "c", Image: "i", Env: []corev1.EnvVar{{Name: "A", Value: "secret"}}, Ports: []corev1.ContainerPort{{ContainerPort: 1}, {Name: "http", ContainerPort: 80, Protocol: corev1.ProtocolTCP}}}}
	full.Spec.InitContainers = []corev1.Container{{Name: "s", Ports: []corev1.ContainerPort{{Name: "side", ContainerPort: 90, Protocol: corev1.ProtocolUDP}}}}
	kept, err := slimPod(full)
	if err != nil {
		t.Fatal(err)
	}
	slim := kept.(*corev1.Pod)
	if slim.Annotations != nil || len(slim.Spec.Containers) != 2 || slim.Spec.Containers[1].Env != nil || full.Annotations == nil {
		t.Errorf("%+v", slim)
	}
	planned := plannedPod(slim)
	if planned.Addresses[0].String() != webAddress || len(planned.Ports) != 2 || planned.Ports[1] != (plan.NamedPort{Name: "http", Protocol: 6, Number: 80}) {
		t.Errorf("%+v", planned)
	}
	for name, change := range map[string]func(*corev1.Pod){
		"on the host's network": func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"ended":                 func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
	} {
		p := slim.DeepCopy()
		change(p)
		if hasAddress(p) || !hasAddress(slim) {
			t.Errorf("a pod %s has an address of its own", name)
		}
	}
}

// TestAPodThatTheAPIForgot: a pod that was deleted by force, or that is said to have ended, may still run. Its rules stay until
// it is off the network.
func TestAPodThatTheAPIForgot(t *testing.T) {
	for name, forget := range map[string]func(*node) error{
		"deleted": func(n *node) error {
			return n.client.CoreV1().Pods("ns").Delete(n.Context(), "web", metav1.DeleteOptions{})
		},
		"ended": func(n *node) error {
			web := podOf("web", webAddress)
			web.Status.Phase = corev1.PodFailed
			_, err := n.client.CoreV1().Pods("ns").Update(n.Context(), web, metav1.UpdateOptions{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			network := &fakeNetwork{connected: []Sandbox{sandboxOf("web", webAddress)}}
			inBubble(t, network, append(world(), fromFriends()), func(n *node) {
				n.settle()
				n.expect("before", true, false)
				if err := forget(n); err != nil {
					n.Fatal(err)
				}
				time.Sleep(3 * pruneInterval)
				n.settle()
				n.expect("it is still on the network", true, false)
				network.disconnect()
				time.Sleep(3 * pruneInterval)
				n.watch.look()
				n.settle()
				n.expect("it is off", true, true)
			})
		})
	}
}
