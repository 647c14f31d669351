package differential

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

const (
	stepsMax = 14
	// worldsEach share a bubble, each in a namespace, so that controllers are started less often.
	worldsEach = 4
	// quietTime is how long after a step all is quiet: upstream writes the status of a Job some seconds later. Steps
	// begin at multiples of it, so that none comes between what one side does in time and the other a little later:
	// upstream adds a second to some waits.
	quietTime = 10 * time.Second
	// stepOffset is when a step begins, after a multiple of quietTime: not with a minute, in which CronJobs start.
	stepOffset = 3 * time.Second
	// workloadName names the workload of every world.
	workloadName = "w"
)

// generator makes a world from its seed.
type generator struct{ *rand.Rand }

func newGenerator(seed uint64) *generator { return &generator{rand.New(rand.NewPCG(seed, 16))} }

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.IntN(n) == 0 }

// A workload is what a world is about. Its edits and its steps of nodes are made from the world's generator.
type workload interface {
	// create puts it into the namespace.
	create(w *world)
	// edit is what the user changes next: the text says what, do does it.
	edit(g *generator) (text string, do func(w *world))
	// actTime is before what each pod does in a step, so that both sides see one change after the other. Without, they see
	// all together.
	actTime() time.Duration
	// ends tells with which probability a running pod ends in a step of the nodes, and how often it succeeds.
	ends() (end, succeed float64)
	// excuse is why the states may differ; empty if nothing does.
	excuse(ours, upstream string) string
	// describe writes the state down, without names and times that are chance.
	describe(w *world, out *strings.Builder)
}

// world is one namespace of a side.
type world struct {
	*reconciletest.World
	t         *testing.T
	namespace string
	workload  workload
}

// step changes a world.
type step struct {
	text string
	do   func(w *world)
}

// steps are a world's, from its seed.
func steps(g *generator, l workload) []step {
	list := []step{{"create", func(w *world) { l.create(w) }}}
	for range 3 + g.IntN(stepsMax-3) {
		switch g.IntN(5) {
		case 0, 1:
			text, do := l.edit(g)
			list = append(list, step{text, do})
		case 2:
			wait := time.Duration(1+g.IntN(9)) * quietTime
			list = append(list, step{fmt.Sprintf("%v pass", wait), func(*world) { time.Sleep(wait) }})
		default:
			seed, end, succeed := g.Uint64(), 0.0, 0.0
			if g.chance(2) {
				end, succeed = l.ends()
			}
			text := fmt.Sprintf("nodes act (end %.1f, succeed %.1f)", end, succeed)
			list = append(list, step{text, func(w *world) { w.nodesAct(newGenerator(seed), end, succeed) }})
		}
	}
	return list
}

// nodesAct lets every pod do something: be placed, run, become ready or not, end, go.
// Pods that look alike may change places between the sides: their order is that of their looks.
func (w *world) nodesAct(g *generator, end, succeed float64) {
	for _, p := range w.ordered() {
		roll, second := g.Float64(), g.Float64() // drawn for each pod, so that the next ones get the same
		if pause := w.workload.actTime(); pause > 0 && !isEnded(&p) {
			time.Sleep(pause)
			synctest.Wait()
		}
		now, err := w.Client.CoreV1().Pods(w.namespace).Get(context.Background(), p.Name, metav1.GetOptions{})
		if err != nil {
			continue // what the others did made it go
		}
		w.act(now, roll, second, end, succeed)
	}
}

// ordered are the pods in the same order on both sides.
func (w *world) ordered() []corev1.Pod {
	pods := w.Pods(w.namespace)
	beside := map[string][]string{}
	for _, p := range pods {
		beside[nodeOf(&p)] = append(beside[nodeOf(&p)], look(&p))
	}
	order := func(p *corev1.Pod) string {
		node := beside[nodeOf(p)]
		slices.Sort(node)
		return order(p) + fmt.Sprint(node)
	}
	slices.SortStableFunc(pods, func(a, b corev1.Pod) int { return strings.Compare(order(&a), order(&b)) })
	return pods
}

// order puts pods into the same order on both sides, as their names cannot.
func order(p *corev1.Pod) string {
	since := p.CreationTimestamp.Time
	for _, c := range p.Status.Conditions {
		since = c.LastTransitionTime.Time
	}
	return look(p) + p.CreationTimestamp.Format(time.RFC3339Nano) + since.Format(time.RFC3339Nano)
}

func (w *world) act(p *corev1.Pod, roll, second, end, succeed float64) {
	switch {
	case p.DeletionTimestamp != nil && len(p.Finalizers) > 0 || isEnded(p) && p.DeletionTimestamp == nil:
		if p.DeletionTimestamp == nil || isEnded(p) {
			return
		}
		setEnded(p, second < succeed)
		w.PutIfThere(p)
	case p.DeletionTimestamp != nil:
		if roll < 0.7 {
			w.RemovePod(p)
		}
	case roll < end:
		setEnded(p, second < succeed)
		w.PutIfThere(p)
	case roll < 0.85:
		p.Spec.NodeName = cmp.Or(p.Spec.NodeName, nodeOf(p))
		ready := second < 0.85
		if p.Status.Phase == corev1.PodPending || p.Status.Phase == "" {
			p.Status.StartTime = &metav1.Time{Time: time.Now()}
		}
		reconciletest.SetReady(p, ready)
		w.PutIfThere(p)
	case roll > 0.95:
		_ = w.Client.CoreV1().Pods(w.namespace).Delete(context.Background(), p.Name, metav1.DeleteOptions{})
	}
}

func isEnded(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

func setEnded(p *corev1.Pod, well bool) {
	code := int32(0)
	p.Status.Phase = corev1.PodSucceeded
	if !well {
		code = 1 + int32(len(p.Status.Conditions))
		p.Status.Phase = corev1.PodFailed
	}
	p.Spec.NodeName = cmp.Or(p.Spec.NodeName, nodeOf(p))
	now := metav1.Now()
	p.Status.Conditions = nil
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: now}},
	}}
}

// nodeOf is where a pod is placed: where its affinity says, or on the first node.
func nodeOf(p *corev1.Pod) string {
	if p.Spec.Affinity == nil {
		return "node-0"
	}
	return p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values[0]
}

// look is what a pod looks like, without its name.
func look(p *corev1.Pod) string {
	var out strings.Builder
	for _, c := range p.Spec.Containers {
		fmt.Fprintf(&out, "%s %s", c.Name, c.Image)
	}
	fmt.Fprintf(&out, " placed=%v %s", p.Spec.NodeName != "", p.Status.Phase)
	for _, c := range p.Status.Conditions {
		fmt.Fprintf(&out, " %s=%s", c.Type, c.Status)
	}
	if p.DeletionTimestamp != nil {
		out.WriteString(" deleted")
	}
	for _, name := range []string{"batch.kubernetes.io/job-completion-index", "batch.kubernetes.io/job-index-failure-count"} {
		if v, ok := p.Annotations[name]; ok {
			fmt.Fprintf(&out, " %s=%s", name, v)
		}
	}
	for _, name := range []string{"apps.kubernetes.io/pod-index", "controller-revision-hash", "pod-template-hash", "pod-template-generation"} {
		if v, ok := p.Labels[name]; ok {
			fmt.Fprintf(&out, " %s=%s", name, v)
		}
	}
	fmt.Fprintf(&out, " finalizers=%v", p.Finalizers)
	for _, o := range p.OwnerReferences {
		fmt.Fprintf(&out, " owner=%s controller=%v block=%v", o.Kind, *o.Controller, o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion)
	}
	return out.String()
}

// describePods writes each look with how many pods have it.
func (w *world) describePods(out *strings.Builder, of func(*corev1.Pod) string) {
	var looks []string
	for _, p := range w.Pods(w.namespace) {
		looks = append(looks, of(&p))
	}
	slices.Sort(looks)
	for i := 0; i < len(looks); {
		n := i
		for n < len(looks) && looks[n] == looks[i] {
			n++
		}
		fmt.Fprintf(out, "  %d pod %s\n", n-i, looks[i])
		i = n
	}
}

// play runs the worlds of the seeds on a side, in one bubble, and returns the history of each.
func play(t *testing.T, k kind, s side, first uint64) []history {
	histories := make([]history, worldsEach)
	synctest.Test(t, func(t *testing.T) {
		shared := reconciletest.New(t)
		ctx, cancel := context.WithCancel(quiet())
		addNodes(shared)
		statuses := watchStatuses(ctx, t, shared, k.watched)
		s.start(ctx, t, shared)
		defer cancel()
		rest()
		var worlds []*world
		var todo [][]step
		for i := range worldsEach {
			g := newGenerator(first + uint64(i))
			w := &world{shared, t, fmt.Sprintf("ns-%d", i), k.make(g)}
			worlds, todo = append(worlds, w), append(todo, steps(g, w.workload))
		}
		for n := range stepsMax + 1 {
			for i, w := range worlds {
				if n < len(todo[i]) {
					if n > 0 {
						w.remind(s)
					}
					todo[i][n].do(w)
				}
				rest()
				if n < len(todo[i]) {
					w.remind(s)
					var out strings.Builder
					w.workload.describe(w, &out)
					h := &histories[i]
					h.states = append(h.states, todo[i][n].text+"\n"+out.String())
					h.published = append(h.published, statuses.take(w.namespace))
				}
			}
		}
	})
	return histories
}

// remind makes upstream look again, where it may have lost the time at which it wanted to: at once, and when the waits
// that ended meanwhile are over.
func (w *world) remind(s side) {
	l, ok := w.workload.(interface{ remind(w *world) })
	if !ok {
		return
	}
	for range 2 {
		if s.name == "upstream" {
			l.remind(w)
		}
		rest()
	}
}

// rest lets the controllers finish, until the next step may begin.
func rest() {
	now := time.Now().Add(-stepOffset)
	time.Sleep(now.Truncate(quietTime).Add(quietTime).Sub(now) % quietTime)
	time.Sleep(quietTime)
	synctest.Wait()
}

// pause lets time pass within a step, until all have reacted.
func pause(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// minReadySeconds are none or no multiple of quietTime.
func minReadySeconds(g *generator) int32 { return []int32{0, 17, 37}[g.IntN(3)] }

// nodes of the worlds, for DaemonSets, in two zones.
const nodes = 4

func addNodes(w *reconciletest.World) {
	for i := range nodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{"zone": fmt.Sprint(i % 2)}}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		reconciletest.Add(w, n)
	}
}
