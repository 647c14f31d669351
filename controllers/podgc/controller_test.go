package podgc

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
	"github.com/setpoint-io/setpoint/internal/parts"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func pod(name, node string, phase corev1.PodPhase, dying bool) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	if dying {
		p.DeletionTimestamp = &metav1.Time{Time: now}
		p.Finalizers = []string{"test/keep"}
	}
	return p
}

func node(name string, outOfService, ready bool) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if outOfService {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
	}
	if ready {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	return n
}

func partOfServer() *corev1.Pod {
	p := pod(parts.PodName(parts.Scheduler, "s"), parts.NodeName("s"), corev1.PodRunning, false)
	p.Namespace = parts.Namespace
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x", parts.SourceAnnotation: parts.Source}
	return p
}

func TestPlan(t *testing.T) {
	nodes := map[string]*corev1.Node{"up": node("up", false, true), "off": node("off", true, false), "mistaken": node("mistaken", true, true)}
	missing := map[string]time.Time{"gone": now.Add(-time.Minute), parts.NodeName("s"): now.Add(-time.Minute), "blinked": now.Add(-time.Second)}
	for _, c := range []struct {
		name string
		pod  *corev1.Pod
		want []reason
	}{
		{"running", pod("p", "up", corev1.PodRunning, false), nil},
		{"terminating on a living node", pod("p", "up", corev1.PodRunning, true), nil},
		{"node gone", pod("p", "gone", corev1.PodRunning, false), []reason{orphaned}},
		{"node gone a moment ago", pod("p", "blinked", corev1.PodRunning, false), nil},
		{"part of a server", partOfServer(), nil},
		{"not placed", pod("p", "", corev1.PodPending, false), nil},
		{"deleted before it was placed", pod("p", "", corev1.PodPending, true), []reason{unplaced}},
		{"terminating, node off", pod("p", "off", corev1.PodRunning, true), []reason{outOfService}},
		{"running, node off", pod("p", "off", corev1.PodRunning, false), nil},
		{"taint on a ready node", pod("p", "mistaken", corev1.PodRunning, true), nil},
		{"finished", pod("p", "up", corev1.PodSucceeded, false), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []reason
			for _, v := range plan([]*corev1.Pod{c.pod}, nodes, missing, finishedLimit, now) {
				got = append(got, v.why)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestKeepsTheYoungestFinished(t *testing.T) {
	var all []*corev1.Pod
	for i := range finishedLimit + 2 {
		p := pod(fmt.Sprint(i), "up", corev1.PodFailed, false)
		p.CreationTimestamp = metav1.NewTime(now.Add(-time.Duration(i) * time.Second))
		all = append(all, p)
	}
	got := plan(all, map[string]*corev1.Node{"up": node("up", false, true)}, nil, finishedLimit, now)
	if len(got) != 2 || got[0].pod != all[finishedLimit+1] || got[1].pod != all[finishedLimit] {
		t.Errorf("%d pods picked", len(got))
	}
}

// A pod may name a node that no Node can be called, which no client can ask for. It ends, and is in no other's way.
func TestEndsPodsOfImpossibleNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		w.Client.PrependReactor("get", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
			name := a.(clienttesting.GetAction).GetName()
			if why := rest.IsValidPathSegmentName(name); len(why) > 0 { // as the real client
				return true, nil, fmt.Errorf("invalid resource name %q: %v", name, why)
			}
			return false, nil, nil
		})
		reconciletest.Add(w, pod("a", "Not_A Node/..", corev1.PodRunning, false))
		reconciletest.Add(w, pod("b", "gone", corev1.PodRunning, false))
		w.Run(New())
		time.Sleep(2 * time.Minute)
		if pods := w.Pods("ns"); len(pods) > 0 {
			t.Errorf("left: %v", pods)
		}
	})
}

func TestEndsOrphansOfADeletedNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		reconciletest.Add(w, node("n1", false, true))
		reconciletest.Add(w, node("n2", false, true))
		reconciletest.Add(w, pod("a", "n1", corev1.PodRunning, false))
		reconciletest.Add(w, pod("b", "n2", corev1.PodRunning, false))
		w.Run(New())
		if err := w.Client.CoreV1().Nodes().Delete(t.Context(), "n1", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Writes()
		time.Sleep(39 * time.Second)
		if n := len(w.Pods("ns")); n != 2 {
			t.Fatalf("%d pods within the patience, want 2", n)
		}
		time.Sleep(time.Minute)
		if pods := w.Pods("ns"); len(pods) != 1 || pods[0].Name != "b" {
			t.Errorf("left: %v", pods)
		}
		if got := strings.Join(w.Writes(), ", "); got != "update pods/status ns/a, delete pods ns/a" {
			t.Errorf("writes: %s", got)
		}
		time.Sleep(time.Hour)
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
	})
}
