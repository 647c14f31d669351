package replicaset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// pod builds a running, ready, placed pod an hour old, changed by the options.
func pod(name string, options ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), CreationTimestamp: ago(time.Hour), Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "n1"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)}}},
	}
	for _, o := range options {
		o(p)
	}
	return p
}

func unplaced(p *corev1.Pod)    { p.Spec.NodeName = ""; pending(p) }
func pending(p *corev1.Pod)     { p.Status.Phase = corev1.PodPending; unready(p) }
func unready(p *corev1.Pod)     { p.Status.Conditions = nil }
func terminating(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: now} }
func failed(p *corev1.Pod)      { p.Status.Phase = corev1.PodFailed }
func cheap(p *corev1.Pod)       { p.Annotations = map[string]string{corev1.PodDeletionCost: "-1"} }
func young(p *corev1.Pod)       { p.CreationTimestamp = ago(time.Second) }
func justReady(p *corev1.Pod)   { p.Status.Conditions[0].LastTransitionTime = ago(time.Second) }
func elsewhere(p *corev1.Pod)   { p.Spec.NodeName = "n2" }
func restarted(p *corev1.Pod) {
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 3}}
}

func TestSurplusOrder(t *testing.T) {
	for _, c := range []struct {
		name    string
		first   *corev1.Pod
		second  *corev1.Pod
		related []*corev1.Pod
	}{
		{"unplaced before placed", pod("b", unplaced), pod("a", pending), nil},
		{"pending before running", pod("b", pending), pod("a", unready), nil},
		{"unready before ready", pod("b", unready), pod("a"), nil},
		{"unready before cheap", pod("b", unready), pod("a", cheap), nil},
		{"cheap before dear", pod("b", cheap), pod("a", justReady), nil},
		{"fuller node first", pod("b"), pod("a", elsewhere), []*corev1.Pod{pod("x")}},
		{"fuller node before younger", pod("b"), pod("a", elsewhere, justReady), []*corev1.Pod{pod("x")}},
		{"shorter ready first", pod("b", justReady), pod("a"), nil},
		{"more restarts first", pod("b", restarted), pod("a"), nil},
		{"younger first", pod("b", young), pod("a"), nil},
		{"uid at last", pod("a"), pod("b"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := surplus([]*corev1.Pod{c.second, c.first}, c.related, 1, now)
			if got[0] != c.first {
				t.Errorf("deleted %s first", got[0].Name)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		name     string
		replicas int32
		seen     observed
		create   int
		remove   int
	}{
		{"from nothing", 3, observed{settled: true}, 3, 0},
		{"enough", 1, observed{settled: true, pods: []*corev1.Pod{pod("a")}}, 0, 0},
		{"too many", 1, observed{settled: true, pods: []*corev1.Pod{pod("a"), pod("b"), pod("c")}}, 0, 2},
		{"a terminating pod is replaced", 1, observed{settled: true, pods: []*corev1.Pod{pod("a", terminating)}}, 1, 0},
		{"a failed pod is replaced", 1, observed{settled: true, pods: []*corev1.Pod{pod("a", failed)}}, 1, 0},
		{"the cache lags", 3, observed{settled: false}, 0, 0},
		{"an own deletion is not seen yet", 1, observed{settled: true, pods: []*corev1.Pod{pod("a"), pod("b")}, deleting: map[types.UID]bool{"a": true}}, 0, 0},
		{"burst", 2000, observed{settled: true}, burstLimit, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := plan(newSet("web", c.replicas), c.seen, now)
			if got.create != c.create || len(got.remove) != c.remove {
				t.Errorf("create %d, remove %d; want %d, %d", got.create, len(got.remove), c.create, c.remove)
			}
		})
	}
}

func TestMinReadySecondsAsksToComeBack(t *testing.T) {
	rs := newSet("web", 2)
	rs.Spec.MinReadySeconds = 10
	got := plan(rs, observed{settled: true, pods: []*corev1.Pod{pod("a"), pod("b", justReady)}}, now)
	if got.status.ReadyReplicas != 2 || got.status.AvailableReplicas != 1 || got.again != 9*time.Second {
		t.Errorf("%+v, again %v", got.status, got.again)
	}
}

// In generated worlds a plan never wants more live pods than wished, deletes
// only surplus that is given to it, and never both creates and deletes.
func TestPlanInGeneratedWorlds(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	options := []func(*corev1.Pod){unplaced, pending, unready, terminating, failed, cheap, young, elsewhere, restarted}
	for world := range 5000 {
		wish := int32(random.IntN(8))
		seen := observed{settled: random.IntN(4) > 0, deleting: map[types.UID]bool{}}
		active := 0
		for i := range random.IntN(10) {
			p := pod(fmt.Sprintf("p%d", i))
			for range random.IntN(3) {
				options[random.IntN(len(options))](p)
			}
			if random.IntN(6) == 0 {
				seen.deleting[p.UID] = true
			} else if podstate.Active(p) {
				active++
			}
			seen.pods = append(seen.pods, p)
		}
		got := plan(newSet("web", wish), seen, now)
		after := active + got.create - len(got.remove)
		switch {
		case got.create > 0 && len(got.remove) > 0:
			t.Fatalf("world %d creates and deletes", world)
		case !seen.settled && after != active:
			t.Fatalf("world %d acts on a stale cache", world)
		case seen.settled && after != int(wish):
			t.Fatalf("world %d ends with %d pods, want %d", world, after, wish)
		}
		for _, p := range got.remove {
			if !slices.Contains(seen.pods, p) || !podstate.Active(p) || seen.deleting[p.UID] {
				t.Fatalf("world %d deletes %s, which is not its to delete", world, p.Name)
			}
		}
	}
}
