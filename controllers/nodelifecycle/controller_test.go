package nodelifecycle

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// liveness is a hand-fed Liveness.
type liveness struct {
	mu      sync.Mutex
	signals map[string]Signal
	changes chan string
}

func newLiveness() *liveness {
	return &liveness{signals: map[string]Signal{}, changes: make(chan string, 100)}
}

func (l *liveness) Node(name string) Signal {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.signals[name]
}

func (l *liveness) Changes() <-chan string { return l.changes }

func (l *liveness) say(name string, session SessionState, gossip GossipState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.signals[name] = Signal{session, time.Now(), gossip, time.Now()}
	l.changes <- name
}

// bubble runs a test with three ready nodes, two pods on each.
func bubble(t *testing.T, body func(t *testing.T, w *reconciletest.World, l *liveness)) {
	synctest.Test(t, func(t *testing.T) {
		w, l := reconciletest.New(t), newLiveness()
		w.Numbers = &numbers.Ledger{}
		for i := range 3 {
			name := fmt.Sprintf("n%d", i)
			l.say(name, SessionAlive, GossipAlive)
			reconciletest.Add(w, readyNode(name))
			reconciletest.Add(w, podOn(name, name+"-plain"))
			reconciletest.Add(w, podOn(name, name+"-patient", tolerate(5)...))
		}
		w.Run(New(l))
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Fatalf("healthy nodes were written to: %v", writes)
		}
		body(t, w, l)
	})
}

func readyNode(name string) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Now().Add(-time.Hour))}, // before this term
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady"}}},
	}
}

func podOn(node, name string, tolerations ...corev1.Toleration) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Spec: corev1.PodSpec{NodeName: node, Tolerations: tolerations}}
	reconciletest.SetReady(p, true)
	return p
}

func tolerate(seconds int64) []corev1.Toleration {
	return []corev1.Toleration{
		{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds},
		{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds},
	}
}

// look describes a node as "ready-status taint:effect ...".
func look(t *testing.T, w *reconciletest.World, name string) string {
	t.Helper()
	n, err := w.Client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := []string{string(readiness(n.Status.Conditions))}
	for _, taint := range n.Spec.Taints {
		out = append(out, strings.TrimPrefix(taint.Key, "node.kubernetes.io/")+":"+string(taint.Effect))
	}
	return strings.Join(out, " ")
}

func evicted(w *reconciletest.World) string {
	var out []string
	for _, p := range w.Pods("ns") {
		if p.DeletionTimestamp != nil {
			out = append(out, p.Name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func assertQuiet(t *testing.T, w *reconciletest.World) {
	t.Helper()
	w.Writes()
	time.Sleep(time.Hour)
	w.Settle()
	if writes := w.Writes(); len(writes) > 0 {
		t.Errorf("an unchanged world was written to: %v", writes)
	}
}

const (
	closedLook = "Unknown unreachable:NoSchedule"
	lostLook   = "Unknown unreachable:NoSchedule unreachable:NoExecute"
)

func TestKilledNode(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World, l *liveness) {
		l.say("n0", SessionLost, GossipDead)
		synctest.Wait()
		expect(t, "at once", look(t, w, "n0"), closedLook)
		if want := "Warning NodeNotReady Node n0 status is now: NodeNotReady"; !slices.Contains(w.Events.List(), want) {
			t.Errorf("%q lacks %q", w.Events.List(), want)
		}
		for _, p := range w.Pods("ns") {
			if onLost := p.Spec.NodeName == "n0"; podstate.Ready(&p) == onLost {
				t.Errorf("pod %s on %s: ready %v", p.Name, p.Spec.NodeName, podstate.Ready(&p))
			}
		}
		time.Sleep(9 * time.Second)
		expect(t, "within the hold-down", look(t, w, "n0"), closedLook)
		expect(t, "counted before", fmt.Sprint(testutil.ToFloat64(w.Numbers.Series().NodeEvictions)), "0")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		expect(t, "after the hold-down", look(t, w, "n0"), lostLook)
		expect(t, "counted", fmt.Sprint(testutil.ToFloat64(w.Numbers.Series().NodeEvictions)), "1")
		expect(t, "pods", evicted(w), "n0-plain")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		expect(t, "pods after their toleration", evicted(w), "n0-patient n0-plain")
		assertQuiet(t, w)
	})
}

// TestSparedPodsAreTold: a node returns while a pod that has to leave it still tolerates that.
func TestSparedPodsAreTold(t *testing.T) {
	const told = "Normal TaintManagerEviction Cancelling deletion of Pod ns/n0-patient"
	bubble(t, func(t *testing.T, w *reconciletest.World, l *liveness) {
		l.say("n0", SessionLost, GossipDead)
		time.Sleep(11 * time.Second)
		synctest.Wait()
		expect(t, "lost", look(t, w, "n0"), lostLook)
		if events := w.Events.List(); slices.Contains(events, told) {
			t.Errorf("too early: %q", events)
		}
		l.say("n0", SessionAlive, GossipAlive)
		synctest.Wait()
		n, _ := w.Client.CoreV1().Nodes().Get(t.Context(), "n0", metav1.GetOptions{})
		n.Status = readyNode("n0").Status // the agent's own report
		if _, err := w.Client.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if events := w.Events.List(); !slices.Contains(events, told) {
			t.Errorf("it is not told: %q", events)
		}
		time.Sleep(time.Minute)
		expect(t, "pods", evicted(w), "n0-plain")
		if events := w.Events.List(); slices.Contains(events, told) {
			t.Errorf("it is told again: %q", events)
		}
	})
}

func TestNodeThatReturnsKeepsItsPods(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World, l *liveness) {
		l.say("n0", SessionLost, GossipDead)
		time.Sleep(8 * time.Second)
		l.say("n0", SessionAlive, GossipAlive)
		synctest.Wait()
		expect(t, "session back", look(t, w, "n0"), closedLook)
		n, _ := w.Client.CoreV1().Nodes().Get(t.Context(), "n0", metav1.GetOptions{})
		n.Status = readyNode("n0").Status // the agent's own report
		if _, err := w.Client.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		expect(t, "reported", look(t, w, "n0"), "True")
		time.Sleep(time.Minute)
		expect(t, "pods", evicted(w), "")
		assertQuiet(t, w)
	})
}

func TestSessionLostButSeen(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World, l *liveness) {
		l.say("n0", SessionLost, GossipAlive)
		synctest.Wait()
		expect(t, "at once", look(t, w, "n0"), "True unreachable:NoSchedule")
		time.Sleep(39 * time.Second)
		expect(t, "within 40 s", look(t, w, "n0"), "True unreachable:NoSchedule")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		expect(t, "after 40 s", look(t, w, "n0"), lostLook)
		expect(t, "pods", evicted(w), "n0-plain")
	})
}

func TestGossipAloneCostsNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World, l *liveness) {
		l.say("n0", SessionAlive, GossipDead)
		synctest.Wait()
		expect(t, "look", look(t, w, "n0"), "True")
		expect(t, "event", strings.Join(w.Events.List(), ";"), "Warning GossipDegraded "+messageGossipLost)
		assertQuiet(t, w)
		l.say("n0", SessionAlive, GossipAlive)
		synctest.Wait()
		n, _ := w.Client.CoreV1().Nodes().Get(t.Context(), "n0", metav1.GetOptions{})
		if c := conditions.Nodes.Find(n.Status.Conditions, GossipDegraded); c == nil || c.Status != corev1.ConditionFalse {
			t.Errorf("condition %+v, want False", c)
		}
	})
}

func TestGoodbye(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World, l *liveness) {
		l.say("n0", SessionClosedCleanly, GossipDead)
		synctest.Wait()
		expect(t, "at once", look(t, w, "n0"), "False not-ready:NoSchedule")
		time.Sleep(4 * time.Minute)
		expect(t, "pods within the drain window", evicted(w), "")
		for _, p := range w.Pods("ns") {
			if !podstate.Ready(&p) {
				t.Errorf("pod %s was taken out of service by a restart of the agent", p.Name)
			}
		}
	})
}

func TestNobodyIsEvictedWhenAllVanish(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World, l *liveness) {
		for _, n := range []string{"n0", "n1", "n2"} {
			l.say(n, SessionLost, GossipDead)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		expect(t, "pods", evicted(w), "")
		expect(t, "look", look(t, w, "n0"), closedLook)
	})
}

// What a Lease says of the time is its node's own: only that it changes counts, wherever that clock jumps.
func TestClocksOfNodes(t *testing.T) {
	const year = 365 * 24 * time.Hour
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		leases := w.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
		renewed := func(by time.Duration) coordinationv1.LeaseSpec {
			return coordinationv1.LeaseSpec{RenewTime: new(metav1.NewMicroTime(time.Now().Add(by)))}
		}
		offsets := map[string][]time.Duration{"ahead": {year}, "behind": {-year}, "jumps": {year, -year, 0}}
		for name, by := range offsets {
			reconciletest.Add(w, readyNode(name))
			reconciletest.Add(w, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease}, Spec: renewed(by[0])})
		}
		reconciletest.Add(w, readyNode("silent"))
		reconciletest.Add(w, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "silent", Namespace: corev1.NamespaceNodeLease}, Spec: renewed(year)})
		w.Run(New(nil))
		for i := range 12 {
			time.Sleep(10 * time.Second)
			for name, by := range offsets {
				l, err := leases.Get(t.Context(), name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				l.Spec = renewed(by[i%len(by)])
				if _, err := leases.Update(t.Context(), l, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			synctest.Wait()
			for name := range offsets {
				expect(t, name, look(t, w, name), "True")
			}
		}
		expect(t, "silent", look(t, w, "silent"), lostLook)
	})
}

func TestStockKubeletIsJudgedByItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		reconciletest.Add(w, readyNode("n1"))
		reconciletest.Add(w, readyNode("n2"))
		lease := func(name string) *coordinationv1.Lease {
			now := metav1.NewMicroTime(time.Now())
			return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease}, Spec: coordinationv1.LeaseSpec{RenewTime: &now}}
		}
		reconciletest.Add(w, lease("n1"))
		reconciletest.Add(w, lease("n2"))
		w.Run(New(nil))
		for range 6 { // n2 renews, n1 does not
			time.Sleep(10 * time.Second)
			l, _ := w.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "n2", metav1.GetOptions{})
			l.Spec = lease("n2").Spec
			if _, err := w.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Update(t.Context(), l, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		expect(t, "silent", look(t, w, "n1"), lostLook)
		expect(t, "renewing", look(t, w, "n2"), "True")
	})
}

func TestConditionsAndCordonBecomeTaints(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World, _ *liveness) {
		n, _ := w.Client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		n.Spec.Unschedulable = true
		n.Spec.Taints = []corev1.Taint{{Key: "mine", Effect: corev1.TaintEffectNoSchedule}}
		n, err := w.Client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionTrue})
		synctest.Wait()
		n.ResourceVersion = ""
		if _, err := w.Client.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		got := strings.Fields(look(t, w, "n1"))
		slices.Sort(got)
		expect(t, "tainted", strings.Join(got, " "), "True memory-pressure:NoSchedule mine:NoSchedule unschedulable:NoSchedule")
		assertQuiet(t, w)
		n, _ = w.Client.CoreV1().Nodes().Get(t.Context(), "n1", metav1.GetOptions{})
		n.Spec.Unschedulable = false
		if _, err := w.Client.CoreV1().Nodes().Update(t.Context(), n, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		expect(t, "uncordoned", look(t, w, "n1"), "True mine:NoSchedule memory-pressure:NoSchedule")
	})
}

// TestNodeThatWritesIsNotDead: whatever keeps its session away, an agent that
// reaches the API lives, and the two do not quarrel about it.
func TestNodeThatWritesIsNotDead(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World, l *liveness) {
		l.say("n0", SessionLost, GossipDead)
		for range 30 {
			time.Sleep(5 * time.Second)
			n, _ := w.Client.CoreV1().Nodes().Get(t.Context(), "n0", metav1.GetOptions{})
			n.Status = readyNode("n0").Status
			n.Status.Conditions[0].LastHeartbeatTime = metav1.Now()
			if _, err := w.Client.CoreV1().Nodes().UpdateStatus(t.Context(), n, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		expect(t, "pods", evicted(w), "")
		expect(t, "look", look(t, w, "n0"), "True unreachable:NoSchedule")
		if writes := w.Writes(); len(writes) > 40 { // 30 are the agent's own
			t.Errorf("%d writes: %v", len(writes), writes)
		}
	})
}

// TestPauseOfThisProcess: a server that stood still has not seen whether nodes
// renewed, and condemns nobody for it.
func TestPauseOfThisProcess(t *testing.T) {
	start := at(0)
	c := &controller{term: start, awake: start, beats: map[string]beat{"n": {seen: start, witnessed: true}}}
	for s := range 5 {
		if got := c.since(at(s)); !got.Equal(start) {
			t.Fatalf("after %d s: deadlines count from %v", s, got)
		}
	}
	if got := c.since(at(64)); !got.Equal(at(64)) {
		t.Errorf("after the pause: deadlines count from %v, want from its end", got)
	}
	if b := c.beats["n"]; !b.seen.Equal(at(64)) || b.witnessed {
		t.Errorf("the node's last beat is %+v", b)
	}
}

// TestNodesComeAndGo: a Node that is made, and one that is deleted, are told of; one that an earlier term knew is not.
func TestNodesComeAndGo(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World, _ *liveness) {
		expect(t, "events of known nodes", strings.Join(w.Events.List(), ";"), "")
		fresh := readyNode("n9")
		fresh.UID, fresh.CreationTimestamp = "u9", metav1.Now()
		reconciletest.Add(w, fresh)
		w.Settle()
		expect(t, "event", strings.Join(w.Events.List(), ";"), "Normal RegisteredNode Node n9 event: Registered Node n9 in Controller")
		if err := w.Client.CoreV1().Nodes().Delete(t.Context(), "n9", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		events := w.Events.List()
		expect(t, "last event", events[len(events)-1], "Normal RemovingNode Node n9 event: Removing Node n9 from Controller")
	})
}
