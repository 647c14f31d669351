package views

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// world is a generated one: nodes and pods that come, change and go, and tallies that are taken and released.
type world struct {
	*rand.Rand
	*Views
	namespaces map[string]labels.Set
	nodes      [6]*corev1.Node
	pods       map[int]placed
	held       []question
	serial     int
}

// placed is a pod and the slot of its node.
type placed struct {
	*Member
	slot int
}

// question is what a tally was asked.
type question struct {
	*Tally
	queries []*Query
	living  bool
	zoning  Zoning
}

func TestCountsAreThoseOfAFreshCount(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &world{Rand: rand.New(rand.NewPCG(seed, 1)), namespaces: map[string]labels.Set{}, pods: map[int]placed{}}
			w.Views = New(func(name string) labels.Set { return w.namespaces[name] })
			for range 300 {
				w.step()
				w.check(t)
			}
			w.empty(t)
		})
	}
}

func (w *world) step() {
	switch w.IntN(9) {
	case 0:
		w.changeNode()
	case 1:
		w.changeNamespace()
	case 2, 3:
		w.ask()
	case 4:
		w.release()
	case 5:
		w.removePod()
	default:
		w.addPod()
	}
}

func (w *world) changeNode() {
	slot := w.IntN(len(w.nodes))
	w.nodes[slot] = nil
	if w.IntN(4) > 0 {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: w.labels("zone", "rack", "disk")}}
		node.Status.Images = []corev1.ContainerImage{{Names: []string{fmt.Sprint("image-", w.IntN(3))}, SizeBytes: int64(w.IntN(2))}}
		w.nodes[slot] = node
	}
	w.SetNode(slot, w.nodes[slot])
}

// labels gives some of the keys a value.
func (w *world) labels(keys ...string) map[string]string {
	set := map[string]string{}
	for _, key := range keys {
		if w.IntN(3) > 0 {
			set[key] = fmt.Sprint("v", w.IntN(3))
		}
	}
	return set
}

func (w *world) namespace() string { return fmt.Sprint("ns-", w.IntN(3)) }

func (w *world) changeNamespace() {
	w.namespaces[w.namespace()] = w.labels("team")
	if w.NamespaceChanged() {
		for len(w.held) > 0 {
			w.release()
		}
	}
}

func (w *world) query() *Query {
	q := &Query{Namespaces: []string{w.namespace()}, Labels: w.selector("app", "tier")}
	switch w.IntN(6) {
	case 0:
		q.Namespaces = append(q.Namespaces, w.namespace())
	case 1:
		q.InNamespaces = w.selector("team")
	case 2:
		q.Namespaces, q.InNamespaces = nil, labels.Everything()
	case 3:
		q.Labels = labels.Nothing()
	}
	return q
}

func (w *world) selector(keys ...string) labels.Selector {
	s := labels.NewSelector()
	for key, value := range w.labels(keys...) {
		op := []selection.Operator{selection.Equals, selection.In, selection.NotIn, selection.Exists}[w.IntN(4)]
		values := []string{value}
		if op == selection.Exists {
			values = nil
		}
		r, err := labels.NewRequirement(key, op, values)
		if err != nil {
			panic(err)
		}
		s = s.Add(*r)
	}
	return s
}

func (w *world) ask() {
	q := question{queries: []*Query{w.query()}, living: w.IntN(2) == 0, zoning: Zoning{Key: []string{"zone", "rack"}[w.IntN(2)]}}
	if w.IntN(3) == 0 {
		q.queries = append(q.queries, w.query())
	}
	if w.IntN(3) == 0 {
		q.zoning.ID = "with a disk"
		q.zoning.Eligible = func(node *corev1.Node) bool { return node.Labels["disk"] != "" }
	}
	q.Tally = w.Tally(q.queries, q.living, q.zoning)
	w.held = append(w.held, q)
}

func (w *world) release() {
	if len(w.held) == 0 {
		return
	}
	i := w.IntN(len(w.held))
	w.Release(w.held[i].Tally)
	w.held[i] = w.held[len(w.held)-1]
	w.held = w.held[:len(w.held)-1]
}

func (w *world) addPod() {
	w.serial++
	m := Member{Namespace: w.namespace(), Labels: w.labels("app", "tier"), Leaving: w.IntN(5) == 0}
	if w.IntN(3) == 0 {
		m.Claims = []string{fmt.Sprint("claim-", w.IntN(2))}
	}
	if w.IntN(3) == 0 {
		q := w.query()
		m.Terms = []*Term{NewTerm(*q, Kind(w.IntN(4)), "zone", 1)}
	}
	w.pods[w.serial] = placed{NewMember(m), w.IntN(len(w.nodes))}
	w.Add(w.pods[w.serial].slot, w.pods[w.serial].Member)
}

func (w *world) removePod() {
	for uid, p := range w.pods { // any
		delete(w.pods, uid)
		w.Remove(p.slot, p.Member)
		return
	}
}

func (w *world) check(t *testing.T) {
	t.Helper()
	for _, q := range w.held {
		w.checkTally(t, q)
	}
	users, images := 0, 0
	for _, p := range w.pods {
		if p.Namespace == "ns-0" && len(p.Claims) > 0 && p.Claims[0] == "claim-0" {
			users++
		}
		w.checkTerms(t, p.Member)
	}
	for _, node := range w.nodes {
		if node != nil && node.Status.Images[0].SizeBytes > 0 && node.Status.Images[0].Names[0] == "image-1" {
			images++
		}
	}
	if w.ClaimUsers("ns-0", "claim-0") != users || w.NodesWith("image-1") != images {
		t.Fatalf("%d users of the claim, %d nodes with the image, want %d and %d", w.ClaimUsers("ns-0", "claim-0"), w.NodesWith("image-1"), users, images)
	}
}

// domain is the value that stands for a slot, if it is in a domain.
func (q *question) domain(w *world, slot int) (string, bool) {
	node := w.nodes[slot]
	if node == nil || q.zoning.Eligible != nil && !q.zoning.Eligible(node) {
		return "", false
	}
	value, ok := node.Labels[q.zoning.Key]
	return value, ok
}

func (w *world) checkTally(t *testing.T, q question) {
	t.Helper()
	want, on := map[string]int64{}, map[int]int64{}
	for slot := range w.nodes {
		if value, ok := q.domain(w, slot); ok {
			want[value] += 0
		}
	}
	for _, p := range w.pods {
		counts := !q.living || !p.Leaving
		for _, query := range q.queries {
			counts = counts && query.Matches(p.Namespace, p.Labels, w.namespaceLabels)
		}
		if !counts {
			continue
		}
		on[p.slot]++
		if value, ok := q.domain(w, p.slot); ok {
			want[value]++
		}
	}
	least, empty := int64(0), true
	if len(want) >= 2 {
		least = 1 << 30
		for _, n := range want {
			least = min(least, n)
		}
	}
	for n := range maps.Values(want) {
		empty = empty && n == 0
	}
	if q.Least(2) != least || q.Empty() != empty {
		t.Fatalf("%s: least %d, empty %v, want %d, %v: %v", q.group.id, q.Least(2), q.Empty(), least, empty, want)
	}
	for _, value := range []string{"v0", "v1", "v2"} {
		if q.At(value) != want[value] {
			t.Fatalf("%s: %d pods at %s, want %d", q.group.id, q.At(value), value, want[value])
		}
	}
	for slot := range w.nodes {
		value, ok := q.domain(w, slot)
		n, in := q.In(slot)
		if in != ok || ok && n != want[value] || q.On(slot) != on[slot] || in != (q.Domain(slot) >= 0) || q.Domain(slot) >= q.Domains() {
			t.Fatalf("%s: slot %d: %d pods in the domain (%v), %d on it, want %d (%v), %d",
				q.group.id, slot, n, in, q.On(slot), want[value], ok, on[slot])
		}
	}
}

// checkTerms looks at the terms about one pod.
func (w *world) checkTerms(t *testing.T, about *Member) {
	t.Helper()
	want := map[string]int64{}
	for _, p := range w.pods {
		for _, term := range p.Terms {
			if term.Matches(about.Namespace, about.Labels, w.namespaceLabels) {
				want[term.id]++
			}
		}
	}
	got := map[string]int64{}
	w.Bearers(about.Namespace, about.Labels, func(b *Bearer) {
		got[b.id] += b.pods
		var placed int64
		for slot := range w.nodes {
			placed += b.On(slot)
		}
		if placed != b.pods {
			t.Fatalf("%s: %d pods on the slots, want %d", b.id, placed, b.pods)
		}
	})
	if !maps.Equal(got, want) {
		t.Fatalf("terms about %v: %v, want %v", about.Labels, got, want)
	}
}

// empty takes everything away and looks for what stayed.
func (w *world) empty(t *testing.T) {
	for len(w.held) > 0 {
		w.release()
	}
	for len(w.pods) > 0 {
		w.removePod()
	}
	for slot := range w.nodes {
		w.SetNode(slot, nil)
	}
	v := w.Views
	if n := len(v.kinds) + len(v.claims) + len(v.groups) + len(v.regions) + len(v.index) + len(v.bearers.by) + len(v.bearers.index) +
		len(v.images) + v.known + v.byLabels; n != 0 {
		t.Errorf("%d entries stayed: %+v", n, v)
	}
}
