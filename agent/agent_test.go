package agent

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/agent/kubeletconfig"
	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/net/network/plan"
	"github.com/setpoint-io/setpoint/agent/pods/podstest"
	"github.com/setpoint-io/setpoint/agent/pods/shutdown"
)

// replaced is a network that counts how often all Services were set.
type replaced struct {
	mu          sync.Mutex
	times, last int
}

func (r *replaced) Replace(all []network.Service) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times, r.last = r.times+1, len(all)
	return nil
}

func (r *replaced) Change([]network.Service, []network.ServiceAddress) error { return nil }
func (r *replaced) Damaged() (bool, error)                                   { return false, nil }

// silentListener accepts nothing: sockets would keep a bubble's time from passing.
type silentListener struct{ closed chan struct{} }

func newSilentListener() *silentListener { return &silentListener{closed: make(chan struct{})} }

func (l *silentListener) Accept() (net.Conn, error) {
	<-l.closed
	return nil, net.ErrClosed
}

func (l *silentListener) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return nil
}

func (l *silentListener) Addr() net.Addr { return &net.TCPAddr{Port: 10250} }

// noAddress is the DNS's network on a machine that has none of its addresses yet.
type noAddress struct{}

func (noAddress) Hold(netip.Addr) error    { return nil }
func (noAddress) Held() netip.Addr         { return netip.Addr{} }
func (noAddress) Dropped() (uint64, error) { return 0, nil }

// TestPodsWaitForNames until somebody answers, so that their first questions are not lost, and not for ever.
func TestPodsWaitForNames(t *testing.T) {
	for name, answered := range map[string]bool{"others answer": true, "nobody answers": false} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"},
				Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "web"}}},
			}
			client, rt := fake.NewClientset(pod), podstest.New(map[string]podstest.Program{"web": {}})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- Run(ctx, Config{
					NodeName: "n1", Client: client, Runtime: rt, DataDir: dir, NodeIP: net.IPv4(192, 0, 2, 1), Listener: newSilentListener(),
					WithoutMounts: true, DNS: noAddress{}, ClusterDomain: "cluster.local",
				})
			}()
			time.Sleep(time.Second)
			setPodCIDR(t, client, "n1", "10.42.7.0/24")
			time.Sleep(namesTimeMax - time.Second)
			if calls := rt.Calls(); !slices.Equal(calls, []string{"podcidr 10.42.7.0/24"}) {
				t.Errorf("%s, at first: %v", name, calls)
			}
			if answered {
				service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-dns"}}
				if _, err := client.CoreV1().Services("kube-system").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			} else {
				time.Sleep(time.Second)
			}
			time.Sleep(100 * time.Millisecond)
			if calls := rt.Calls(); !slices.Contains(calls, "start c/0") {
				t.Errorf("%s: %v", name, calls)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

func TestRunFromRegistrationToARunningPod(t *testing.T) {
	dir := t.TempDir()
	for _, sub := range []string{"pods", "logs"} { // made before, with modes of its maker's
		if err := os.Mkdir(filepath.Join(dir, sub), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		client, rt := fake.NewClientset(), podstest.New(map[string]podstest.Program{"web": {}})
		var mu sync.Mutex
		var peers [][]plan.Node
		var services replaced
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- Run(ctx, Config{
				NodeName: "n1", Client: client, Runtime: rt, DataDir: dir, NodeIP: net.IPv4(192, 0, 2, 1), Listener: newSilentListener(),
				NodeMeta: NodeMeta{Labels: map[string]string{"zone": "a"}}, WithoutMounts: true,
				PodNetwork: func(context.Context) (PodNetwork, error) {
					return PodNetwork{Ranges: network.Ranges{Pods: netip.MustParsePrefix("10.42.0.0/16")}, NodeMaskSize: 24}, nil
				},
				SetPeers: func(_ plan.Node, p []plan.Node) { mu.Lock(); defer mu.Unlock(); peers = append(peers, p) },
				Services: &services,
			})
		}()
		time.Sleep(time.Second)
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"},
			Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "web"}}},
		}
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if calls := rt.Calls(); len(calls) != 0 {
			t.Errorf("before the pod CIDR is known: %v", calls)
		}
		setPodCIDR(t, client, "n1", "0.0.0.0/1")
		time.Sleep(3 * networkRetry)
		if calls := rt.Calls(); len(calls) != 0 {
			t.Errorf("with a range that is not of the cluster: %v", calls)
		}
		setPodCIDR(t, client, "n1", "10.42.7.0/24")
		other := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}, Spec: corev1.NodeSpec{PodCIDR: "10.42.8.0/24"},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.2"}}}}
		if _, err := client.CoreV1().Nodes().Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * networkRetry)
		if calls := rt.Calls(); !slices.Equal(calls, []string{"podcidr 10.42.7.0/24", "run p", "start c/0"}) {
			t.Errorf("calls = %v", calls)
		}
		got, _ := client.CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
		if got.Status.Phase != corev1.PodRunning || got.Status.HostIP != "192.0.2.1" {
			t.Errorf("status: %+v", got.Status)
		}
		checkNode(t, client)
		for _, sub := range []string{"pods", "logs"} {
			if info, err := os.Stat(filepath.Join(dir, sub)); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%s, where Secrets lie, has mode %v %v", sub, info.Mode(), err)
			}
		}
		mu.Lock()
		want := []plan.Node{{Name: "n2", PodCIDR: netip.MustParsePrefix("10.42.8.0/24"), IP: netip.MustParseAddr("192.0.2.2")}}
		if diff := cmp.Diff(want, peers[len(peers)-1]); diff != "" {
			t.Errorf("peers: %s", diff)
		}
		mu.Unlock()
		services.mu.Lock()
		if services.times != 1 || services.last != 0 {
			t.Errorf("a cluster without Services, told %d times: %d", services.times, services.last)
		}
		services.mu.Unlock()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if rt.Left() != 2 {
			t.Error("stopping the agent must leave the pod running")
		}
	})
}

// TestPodsEndWithTheAgentWhenAsked, and the API hears how.
func TestPodsEndWithTheAgentWhenAsked(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p", UID: "u"},
			Spec:       corev1.PodSpec{NodeName: "n1", Containers: []corev1.Container{{Name: "c", Image: "web"}}},
		}
		client, rt := fake.NewClientset(pod), podstest.New(map[string]podstest.Program{"web": {}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- Run(ctx, Config{
				NodeName: "n1", Client: client, Runtime: rt, DataDir: dir, NodeIP: net.IPv4(192, 0, 2, 1), Listener: newSilentListener(),
				WithoutMounts: true, Course: Course{EndPodsOnStop: true},
				Settings: kubeletconfig.Settings{Shutdown: shutdown.Split(time.Minute, 0)},
			})
		}()
		time.Sleep(time.Second)
		setPodCIDR(t, client, "n1", "10.42.7.0/24")
		time.Sleep(time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		got, err := client.CoreV1().Pods("default").Get(context.Background(), "p", metav1.GetOptions{})
		if err != nil || got.Status.Phase != corev1.PodFailed || got.Status.Reason != "Terminated" {
			t.Errorf("status %+v, %v", got.Status, err)
		}
	})
}

func setPodCIDR(t *testing.T, client *fake.Clientset, name, cidr string) {
	t.Helper()
	n, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n.Spec.PodCIDR = cidr
	if _, err := client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func checkNode(t *testing.T, client *fake.Clientset) {
	t.Helper()
	n, err := client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n.Labels["zone"] != "a" || n.Labels[corev1.LabelHostname] != "n1" || n.Status.DaemonEndpoints.KubeletEndpoint.Port != 10250 ||
		n.Status.NodeInfo.ContainerRuntimeVersion != "setpoint://test" {
		t.Errorf("node: %+v", n)
	}
	events, _ := client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
	// Events of one instant share a name, and in a bubble all is one instant.
	if len(events.Items) == 0 || events.Items[0].Source.Host != "n1" {
		t.Errorf("events: %+v", events.Items)
	}
}

func TestConfigSaysWhatIsMissing(t *testing.T) {
	if err := Run(t.Context(), Config{NodeName: "n1"}); !errors.Is(err, ErrIncomplete) {
		t.Errorf("err = %v", err)
	}
}

// TestTheFirstListOfPodsIsConsistent: what some replica has of yesterday would
// start pods that are gone and end those that are new.
func TestTheFirstListOfPodsIsConsistent(t *testing.T) {
	a := &agent{Config: Config{NodeName: "n1"}}
	for given, want := range map[string]string{"0": "", "": "", "17": "17"} {
		o := metav1.ListOptions{ResourceVersion: given}
		a.boundHere(&o)
		if o.ResourceVersion != want || o.FieldSelector != "spec.nodeName=n1" {
			t.Errorf("from %q: %+v", given, o)
		}
	}
}

// TestOwnNodeIsWatchedForTheJudgementOfOthers: a node that was given up and is
// back must say so at once.
func TestOwnNodeIsWatchedForTheJudgementOfOthers(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
	}
	looks := 0
	w := &nodeWatch{self: "n1", cidr: make(chan string, 1), look: func() { looks++ }}
	w.changed(node("n1", corev1.ConditionTrue))
	w.changed(node("n2", corev1.ConditionUnknown))
	if looks != 0 {
		t.Errorf("%d looks for no reason", looks)
	}
	w.changed(node("n1", corev1.ConditionUnknown))
	w.gone(node("n1", corev1.ConditionTrue))
	if looks != 2 {
		t.Errorf("%d looks, want one when given up and one when deleted", looks)
	}
}
