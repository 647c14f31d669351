package differential

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// finishedKept is how many finished pods of all worlds of a bubble both sides keep.
const finishedKept = 9

// podGCWorld are pods that nobody else deletes, on nodes of its own that come, go and are declared out of service.
type podGCWorld struct {
	plain
	seed uint64
	made int
}

func newPodGC(g *generator) workload { return &podGCWorld{seed: g.Uint64()} }

func (l *podGCWorld) create(w *world) {
	g := newGenerator(l.seed)
	for i := range 2 {
		w.addNode(i, g)
	}
	for range 1 + g.IntN(4) {
		l.addPod(w, g)
	}
	time.Sleep(settled)
}

func (w *world) nodeName(i int) string { return fmt.Sprintf("%s-%d", w.namespace, i) }

func (w *world) addNode(i int, g *generator) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.nodeName(i)}}
	setNode(n, g)
	if _, err := w.Client.CoreV1().Nodes().Get(context.Background(), n.Name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
		reconciletest.Add(w.World, n)
	}
}

// setNode makes it ready or not, and in service or not.
func setNode(n *corev1.Node, g *generator) {
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: pick(g, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionUnknown)}}
	n.Spec.Taints = nil
	if g.chance(2) {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: pick(g, corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule)}}
	}
}

// addPod makes one in any state, on a node of the world, on one that never was, or on none.
func (l *podGCWorld) addPod(w *world, g *generator) {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-p%d", w.namespace, l.made), Namespace: w.namespace, Generation: int64(1 + g.IntN(3))}}
	l.made++
	if node := g.IntN(4); node < 3 {
		p.Spec.NodeName = w.nodeName(node) // the third is never there at first
	}
	p.Status.Phase = pick(g, corev1.PodPending, corev1.PodRunning, corev1.PodRunning, corev1.PodSucceeded, corev1.PodFailed, corev1.PodUnknown)
	if p.Status.Phase == corev1.PodFailed && g.chance(2) {
		p.Status.Reason = "Evicted"
	}
	if g.chance(3) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: pick(g, corev1.ConditionTrue, corev1.ConditionFalse), Reason: "EvictionByEvictionAPI"}}
	}
	if g.chance(4) {
		p.Finalizers = []string{"test/keep"}
	}
	p.Spec.TerminationGracePeriodSeconds = new(int64(30))
	reconciletest.Add(w.World, p)
}

// settled is how long after a change both sides have done all: a node that is missing gets 40 seconds, and upstream looks every 20.
const settled = 100 * time.Second

func (l *podGCWorld) edit(g *generator) (string, func(w *world)) {
	text, do := l.changes(g)
	return text, func(w *world) {
		do(w)
		time.Sleep(settled)
	}
}

func (l *podGCWorld) changes(g *generator) (string, func(w *world)) {
	seed, i := g.Uint64(), g.IntN(3)
	switch g.IntN(6) {
	case 0:
		return fmt.Sprintf("node %d goes", i), func(w *world) {
			err := w.Client.CoreV1().Nodes().Delete(context.Background(), w.nodeName(i), metav1.DeleteOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				w.t.Fatal(err)
			}
		}
	case 1:
		return fmt.Sprintf("node %d comes", i), func(w *world) { w.addNode(i, newGenerator(seed)) }
	case 2:
		return fmt.Sprintf("node %d changes", i), func(w *world) {
			change(w, w.Client.CoreV1().Nodes(), w.nodeName(i), func(n *corev1.Node) { setNode(n, newGenerator(seed)) })
		}
	case 3:
		return "pods are deleted", func(w *world) {
			g := newGenerator(seed)
			for _, p := range w.Pods(w.namespace) {
				if g.chance(3) {
					_ = w.Client.CoreV1().Pods(w.namespace).Delete(context.Background(), p.Name, metav1.DeleteOptions{})
				}
			}
		}
	default:
		return "pods come", func(w *world) {
			g := newGenerator(seed)
			for range 1 + g.IntN(3) {
				l.addPod(w, g)
			}
		}
	}
}

func (l *podGCWorld) describe(w *world, out *strings.Builder) {
	for _, p := range w.Pods(w.namespace) {
		fmt.Fprintf(out, "  pod %s on %q %s %s deleted=%v finalizers=%v observed=%d", p.Name, p.Spec.NodeName, p.Status.Phase, p.Status.Reason,
			p.DeletionTimestamp != nil, p.Finalizers, p.Status.ObservedGeneration)
		for _, c := range p.Status.Conditions {
			fmt.Fprintf(out, " %s=%s %s %q %d", c.Type, c.Status, c.Reason, c.Message, c.ObservedGeneration)
		}
		fmt.Fprintln(out)
	}
}
