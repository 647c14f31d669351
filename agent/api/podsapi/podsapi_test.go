package podsapi

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	api "k8s.io/kubelet/pkg/apis/pods/v1alpha1"
)

// node has these pods.
type node struct {
	mu      sync.Mutex
	list    []*corev1.Pod
	unknown bool
}

func (n *node) Pods() []*corev1.Pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	return append([]*corev1.Pod{}, n.list...)
}

func (n *node) Mirrors() ([]*corev1.Pod, bool) { return nil, !n.unknown }

func (n *node) set(pods ...*corev1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = pods
}

// asked runs s over a socket of the test, with a file there that an earlier one left.
func asked(t *testing.T, s *Server, n *node) api.PodsClient {
	t.Helper()
	dir, err := os.MkdirTemp("", "pods") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "pods-api.sock")
	if err := os.WriteFile(socket, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // outlives the test's context: the cleanup ends it
	done := make(chan error)
	go func() { done <- s.Run(ctx, socket, n) }()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return api.NewPodsClient(conn)
}

func pod(name string, phase corev1.PodPhase, conditions ...corev1.PodCondition) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID("uid of " + name)},
		Spec:       corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: phase, Conditions: conditions},
	}
}

func read(t *testing.T, text []byte) *corev1.Pod {
	t.Helper()
	p := &corev1.Pod{}
	if err := p.Unmarshal(text); err != nil {
		t.Fatal(err)
	}
	return p
}

var isReady = corev1.PodCondition{Type: corev1.PodReady, Status: corev1.ConditionTrue}

func TestPodsAreToldWithWhatTheAgentFoundOut(t *testing.T) {
	gate := corev1.PodCondition{Type: "example.com/gate", Status: corev1.ConditionTrue}
	s := New()
	client := asked(t, s, &node{list: []*corev1.Pod{pod("b", "", isReady), pod("a", corev1.PodPending, gate)}})
	s.PodChanged("uid of a", &corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1", Conditions: []corev1.PodCondition{isReady}})
	list, err := client.ListPods(t.Context(), &api.ListPodsRequest{})
	if err != nil || len(list.Pods) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	a, b := read(t, list.Pods[0]), read(t, list.Pods[1])
	if a.Name != "a" || a.Spec.NodeName != "n" || a.Status.PodIP != "10.0.0.1" || len(a.Status.Conditions) != 2 {
		t.Errorf("%+v", a)
	}
	if c := b.Status.Conditions[0]; b.Status.Phase != corev1.PodPending || c.Status != corev1.ConditionFalse || c.Reason != "ContainersNotReady" {
		t.Errorf("before the agent has looked at it: %+v", b.Status)
	}
	one, err := client.GetPod(t.Context(), &api.GetPodRequest{PodUID: "uid of a"})
	if err != nil || read(t, one.Pod).Status.Phase != corev1.PodRunning {
		t.Errorf("%v, %v", one, err)
	}
	s.PodGone("uid of a")
	if one, err := client.GetPod(t.Context(), &api.GetPodRequest{PodUID: "uid of a"}); err != nil || read(t, one.Pod).Status.Phase != corev1.PodPending {
		t.Errorf("what is gone is remembered: %v, %v", one, err)
	}
	if _, err := client.GetPod(t.Context(), &api.GetPodRequest{PodUID: "x"}); grpcstatus.Code(err) != codes.NotFound {
		t.Error(err)
	}
}

func TestAWatcherIsSentWhatDiffers(t *testing.T) {
	s, n := New(), &node{list: []*corev1.Pod{pod("b", corev1.PodRunning), pod("a", corev1.PodRunning)}}
	stream, err := asked(t, s, n).WatchPods(t.Context(), &api.WatchPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	next := func(kind api.EventType, name string) *corev1.Pod {
		t.Helper()
		event, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		got := read(t, event.Pod)
		if event.Type != kind || got.Name != name {
			t.Fatalf("%s of %q, want %s of %q", event.Type, got.Name, kind, name)
		}
		return got
	}
	next(api.EventType_ADDED, "a")
	next(api.EventType_ADDED, "b")
	next(api.EventType_INITIAL_SYNC_COMPLETE, "")
	s.PodChanged("uid of a", nil) // says nothing new, so nothing is sent
	s.PodChanged("uid of b", &corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"})
	if got := next(api.EventType_MODIFIED, "b"); got.Status.Reason != "Evicted" {
		t.Errorf("%+v", got.Status)
	}
	n.set(pod("b", corev1.PodRunning), pod("c", corev1.PodPending))
	s.PodChanged("uid of c", nil)
	next(api.EventType_ADDED, "c")
	if got := next(api.EventType_DELETED, "a"); got.Namespace != "ns" || got.UID != "uid of a" || got.Spec.NodeName != "" {
		t.Errorf("%+v", got)
	}
}

// TestTheSameStatusWakesNobody: the agent finds it out again and again, and without a server each time with the time of now.
func TestTheSameStatusWakesNobody(t *testing.T) {
	s := New()
	at := func(minute int, ready corev1.ConditionStatus) *corev1.PodStatus {
		when := metav1.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)
		return &corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &when, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready, LastTransitionTime: when}}}
	}
	s.PodChanged("a", at(1, corev1.ConditionFalse))
	changed := s.next()
	s.PodChanged("a", at(2, corev1.ConditionFalse))
	select {
	case <-changed:
		t.Error("woken by the same")
	default:
	}
	s.PodChanged("a", at(3, corev1.ConditionTrue))
	<-changed
	if got := s.statuses["a"]; got.StartTime.Minute() != 1 || got.Conditions[0].LastTransitionTime.Minute() != 3 {
		t.Errorf("%+v", got)
	}
}

func TestLimits(t *testing.T) {
	s, n := New(), &node{unknown: true}
	client := asked(t, s, n)
	if _, err := client.ListPods(t.Context(), &api.ListPodsRequest{}); grpcstatus.Code(err) != codes.FailedPrecondition {
		t.Errorf("before the API has told of all pods: %v", err)
	}
	for range watchersMax {
		s.watchers <- struct{}{}
	}
	stream, err := client.WatchPods(t.Context(), &api.WatchPodsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); grpcstatus.Code(err) != codes.ResourceExhausted {
		t.Errorf("one watcher more: %v", err)
	}
}

func TestCallsBeyondTheRateAreRefused(t *testing.T) {
	never := flowcontrol.NewFakeNeverRateLimiter()
	if _, err := limitCalls(never)(t.Context(), nil, nil, nil); grpcstatus.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	if err := limitStreams(never)(nil, nil, nil, nil); grpcstatus.Code(err) != codes.ResourceExhausted {
		t.Error(err)
	}
}
