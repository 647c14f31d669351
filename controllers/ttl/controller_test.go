package ttl

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// TestSizeFollowsAWalk: the seconds change only where upstream's table says, in each direction.
func TestSizeFollowsAWalk(t *testing.T) {
	up := map[int]int{101: 15, 501: 30, 1001: 60, 2001: 300}
	down := map[int]int{89: 0, 449: 15, 899: 30, 1799: 60}
	rng := rand.New(rand.NewPCG(1, 2))
	var s size
	nodes, want := 0, 0
	for range 200_000 {
		by, at := 1, up
		if nodes > 0 && (nodes > 2300 || rng.IntN(100) < 49) {
			by, at = -1, down
		}
		nodes += by
		was := want
		if to, ok := at[nodes]; ok && (to > want) == (by > 0) {
			want = to
		}
		if changed := s.add(by); changed != (was != want) || s.ttlSeconds() != want {
			t.Fatalf("%d nodes: %d s, want %d s; changed is %v", nodes, s.ttlSeconds(), want, changed)
		}
	}
}

func TestAnnotatesNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		add := func(from, to int) {
			for i := from; i < to; i++ {
				reconciletest.Add(w, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%03d", i)}})
			}
			w.Settle()
		}
		expect := func(what, want string) {
			t.Helper()
			w.Settle()
			list, err := w.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range list.Items {
				if got := n.Annotations["node.alpha.kubernetes.io/ttl"]; got != want {
					t.Errorf("%s: %s has %q, want %q", what, n.Name, got, want)
				}
			}
		}
		w.Run(New())
		add(0, 100)
		expect("100 nodes", "0")
		w.Writes()
		w.Run(New())
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
		add(100, 101)
		expect("101 nodes, all told at once", "15")
		node, _ := w.Client.CoreV1().Nodes().Get(t.Context(), "n007", metav1.GetOptions{})
		node.Annotations["node.alpha.kubernetes.io/ttl"] = "forever"
		if _, err := w.Client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		expect("after an edit", "15")
		for i := range 12 {
			if err := w.Client.CoreV1().Nodes().Delete(t.Context(), fmt.Sprintf("n%03d", i), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		w.Settle()
		w.Writes()
		expect("89 nodes", "0")
		if got := strings.Join(w.Writes(), " "); got != "" {
			t.Errorf("written after it settled: %s", got)
		}
	})
}
