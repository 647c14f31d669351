package nodelifecycle

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var t0 = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return t0.Add(time.Duration(seconds) * time.Second) }

func TestJudge(t *testing.T) {
	const never = time.Duration(0)
	for _, c := range []struct {
		name  string
		s     Signal
		beat  heartbeat
		term  int
		now   int
		state state
		evict bool
		again time.Duration
	}{
		{"alive and seen", Signal{Session: SessionAlive, Gossip: GossipAlive}, heartbeat{}, 0, 1000, healthy, false, never},
		{"alive, not in the pool", Signal{Session: SessionAlive}, heartbeat{}, 0, 1000, healthy, false, never},
		{"alive, gossip says dead", Signal{Session: SessionAlive, Gossip: GossipDead}, heartbeat{}, 0, 1000, degraded, false, never},
		{"lost but seen, first", Signal{Session: SessionLost, SessionSince: at(100), Gossip: GossipAlive}, heartbeat{}, 0, 100, suspect, false, 40 * time.Second},
		{"lost but seen, later", Signal{Session: SessionLost, SessionSince: at(100), Gossip: GossipAlive}, heartbeat{}, 0, 139, suspect, false, time.Second},
		{"lost but seen, too long", Signal{Session: SessionLost, SessionSince: at(100), Gossip: GossipAlive}, heartbeat{}, 0, 140, down, true, never},
		{"lost before the term", Signal{Session: SessionLost, SessionSince: at(0), Gossip: GossipAlive}, heartbeat{}, 100, 120, suspect, false, 20 * time.Second},
		{"lost and dead, first", Signal{Session: SessionLost, SessionSince: at(100), Gossip: GossipDead, GossipSince: at(102)}, heartbeat{}, 0, 102, down, false, 8 * time.Second},
		{"lost and dead, held down", Signal{Session: SessionLost, SessionSince: at(100), Gossip: GossipDead, GossipSince: at(102)}, heartbeat{}, 0, 110, down, true, never},
		{"quiet", Signal{Session: SessionQuiet, SessionSince: at(100), Gossip: GossipAlive}, heartbeat{}, 0, 150, healthy, false, never},
		{"quiet, not in the pool", Signal{Session: SessionQuiet, SessionSince: at(100)}, heartbeat{}, 0, 150, healthy, false, never},
		{"quiet and dead", Signal{Session: SessionQuiet, SessionSince: at(100), Gossip: GossipDead, GossipSince: at(103)}, heartbeat{}, 0, 103, down, false, 7 * time.Second},
		{"lost and dead before the term", Signal{Session: SessionLost, SessionSince: at(0), Gossip: GossipDead, GossipSince: at(1)}, heartbeat{}, 100, 105, down, false, 5 * time.Second},
		{"goodbye", Signal{Session: SessionClosedCleanly, SessionSince: at(100), Gossip: GossipDead}, heartbeat{}, 0, 200, draining, false, 200 * time.Second},
		{"goodbye, never back", Signal{Session: SessionClosedCleanly, SessionSince: at(100)}, heartbeat{}, 0, 411, down, true, never},
		{"lease fresh", Signal{}, heartbeat{at: at(100), reported: true}, 0, 110, healthy, false, 30 * time.Second},
		{"lease old", Signal{}, heartbeat{at: at(100), reported: true}, 0, 140, down, false, 10 * time.Second},
		{"lease old, held down", Signal{}, heartbeat{at: at(100), reported: true}, 0, 150, down, true, never},
		{"lease old, but it promises longer", Signal{}, heartbeat{at: at(100), reported: true, promised: 90 * time.Second}, 0, 150, healthy, false, 40 * time.Second},
		{"lost and dead, but it writes", Signal{Session: SessionLost, SessionSince: at(100), Gossip: GossipDead, GossipSince: at(102)}, heartbeat{at: at(110), reported: true, witnessed: true}, 0, 120, suspect, false, 30 * time.Second},
		{"lost and dead, it wrote just then", Signal{Session: SessionLost, SessionSince: at(100), Gossip: GossipDead, GossipSince: at(102)}, heartbeat{at: at(101), reported: true, witnessed: true}, 0, 120, down, true, never},
		{"lost and dead, it wrote before we looked", Signal{Session: SessionLost, SessionSince: at(100), Gossip: GossipDead, GossipSince: at(102)}, heartbeat{at: at(110), reported: true}, 0, 120, down, true, never},
		{"lost and dead, it no longer writes", Signal{Session: SessionLost, SessionSince: at(100), Gossip: GossipDead, GossipSince: at(102)}, heartbeat{at: at(110), reported: true, witnessed: true}, 0, 150, down, true, never},
		{"goodbye, but it writes", Signal{Session: SessionClosedCleanly, SessionSince: at(100)}, heartbeat{at: at(110), reported: true, witnessed: true}, 0, 120, suspect, false, 30 * time.Second},
		{"new node, no report yet", Signal{}, heartbeat{at: at(100), reported: false}, 0, 150, healthy, false, 10 * time.Second},
		{"gossip alone is no session", Signal{Gossip: GossipDead}, heartbeat{at: at(100), reported: true}, 0, 110, healthy, false, 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			want := verdict{c.state, c.evict, c.again}
			if got := judge(c.s, c.beat, at(c.term), at(c.now)); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestBudgetOfASmallCluster(t *testing.T) {
	b := newBudget()
	for i := range 3 {
		b.observe(fmt.Sprint(i), "z", false, at(0))
	}
	b.observe("0", "z", true, at(10))
	if _, ok := b.spend("z", at(20)); !ok {
		t.Error("one lost node of three is not evicted")
	}
	b.observe("1", "z", true, at(30))
	if wait, ok := b.spend("z", at(40)); ok || wait != 80*time.Second {
		t.Errorf("two lost of three: ok %v, wait %v; want the slow rate", ok, wait)
	}
	b.observe("2", "z", true, at(50))
	if _, ok := b.spend("z", at(500)); ok {
		t.Error("evicted although every node is bad")
	}
}

func TestBudgetFreezesWhenManyVanish(t *testing.T) {
	b := newBudget()
	for i := range 20 {
		b.observe(fmt.Sprint(i), "z", false, at(0))
	}
	for i := range 4 {
		b.observe(fmt.Sprint(i), "z", true, at(10+i))
	}
	if wait, halted := b.halted(at(14)); !halted || wait != 59*time.Second {
		t.Errorf("halted %v for %v, want 59s", halted, wait)
	}
	if _, ok := b.spend("z", at(73)); !ok {
		t.Error("still frozen after the minute")
	}
	if wait, ok := b.spend("z", at(74)); ok || wait != 9*time.Second {
		t.Errorf("second node: ok %v, wait %v; want one node in 10 s", ok, wait)
	}
}

func TestEvictions(t *testing.T) {
	added := metav1.NewTime(at(100))
	unreachable := corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}
	user := corev1.Taint{Key: "user", Value: "v", Effect: corev1.TaintEffectNoExecute, TimeAdded: &added}
	seconds := func(n int64) corev1.Toleration {
		return corev1.Toleration{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, TolerationSeconds: &n}
	}
	forever := corev1.Toleration{Operator: corev1.TolerationOpExists}
	for _, c := range []struct {
		name        string
		taints      []corev1.Taint
		tolerations []corev1.Toleration
		term        int
		due         bool
		again       time.Duration
	}{
		{"no taint", nil, nil, 0, false, 0},
		{"not tolerated", []corev1.Taint{unreachable}, nil, 0, true, 0},
		{"tolerated forever", []corev1.Taint{unreachable}, []corev1.Toleration{forever}, 0, false, 0},
		{"tolerated for 5 s", []corev1.Taint{unreachable}, []corev1.Toleration{seconds(5)}, 0, true, 0},
		{"tolerated for 30 s", []corev1.Taint{unreachable}, []corev1.Toleration{seconds(30)}, 0, false, 20 * time.Second},
		{"a new term waits again", []corev1.Taint{unreachable}, []corev1.Toleration{seconds(30)}, 105, false, 25 * time.Second},
		{"the shortest counts", []corev1.Taint{unreachable}, []corev1.Toleration{forever, seconds(30)}, 0, false, 20 * time.Second},
		{"both taints must be tolerated", []corev1.Taint{unreachable, user}, []corev1.Toleration{seconds(30)}, 0, true, 0},
		{"value must match", []corev1.Taint{user}, []corev1.Toleration{{Key: "user", Value: "other"}}, 0, true, 0},
		{"value matches", []corev1.Taint{user}, []corev1.Toleration{{Key: "user", Value: "v"}}, 0, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &corev1.Pod{Spec: corev1.PodSpec{Tolerations: c.tolerations}}
			got := evictions(c.taints, []*corev1.Pod{p}, at(c.term), at(110))
			if (len(got.due) == 1) != c.due || got.again != c.again {
				t.Errorf("due %v, again %v", got.due != nil, got.again)
			}
		})
	}
}
