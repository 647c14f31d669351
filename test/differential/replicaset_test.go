package differential

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// replicaSetWorld is a ReplicaSet, with pods that nobody owns.
type replicaSetWorld struct {
	plain
	first *appsv1.ReplicaSet
}

func newReplicaSet(g *generator) workload {
	rs := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: workloadName}}
	rs.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": workloadName}}
	rs.Spec.Template = template(g)
	rs.Spec.Replicas = new(int32(g.IntN(12)))
	rs.Spec.MinReadySeconds = minReadySeconds(g)
	return &replicaSetWorld{first: rs}
}

func (l *replicaSetWorld) create(w *world) {
	rs := l.first.DeepCopy()
	rs.Namespace = w.namespace
	create(w, w.Client.AppsV1().ReplicaSets(w.namespace), rs)
}

func (l *replicaSetWorld) edit(g *generator) (string, func(w *world)) {
	replicas, minReady, next, seed := int32(g.IntN(15)), minReadySeconds(g), template(g), g.Uint64()
	set := func(f func(rs *appsv1.ReplicaSet)) func(w *world) {
		return func(w *world) { change(w, w.Client.AppsV1().ReplicaSets(w.namespace), workloadName, f) }
	}
	switch g.IntN(8) {
	case 0:
		return fmt.Sprintf("min ready %d", minReady), set(func(rs *appsv1.ReplicaSet) { rs.Spec.MinReadySeconds = minReady })
	case 1:
		return next.Spec.Containers[0].Image, set(func(rs *appsv1.ReplicaSet) { rs.Spec.Template = next })
	case 2:
		return "an orphan", func(w *world) {
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "orphan-", Namespace: w.namespace, Labels: next.Labels}, Spec: next.Spec}
			create(w, w.Client.CoreV1().Pods(w.namespace), p)
		}
	case 3:
		return "a pod gets other labels", func(w *world) { relabel(w, newGenerator(seed)) }
	case 4:
		return "deletion costs", func(w *world) { setCosts(w, newGenerator(seed)) }
	case 5:
		return "containers restart", func(w *world) { setRestarts(w, newGenerator(seed)) }
	default:
		return fmt.Sprintf("scale to %d", replicas), set(func(rs *appsv1.ReplicaSet) { rs.Spec.Replicas = &replicas })
	}
}

// relabel takes the first of the pods, by their looks, out of the selector or back into it.
func relabel(w *world, g *generator) {
	for i, p := range w.ordered() {
		if i == 0 || g.chance(4) {
			change(w, w.Client.CoreV1().Pods(w.namespace), p.Name, func(p *corev1.Pod) {
				p.Labels = map[string]string{"app": map[string]string{workloadName: "other", "other": workloadName}[p.Labels["app"]]}
			})
		}
	}
}

// setCosts says which pods to delete first.
func setCosts(w *world, g *generator) {
	for _, p := range w.ordered() {
		cost := g.IntN(4) - 1
		change(w, w.Client.CoreV1().Pods(w.namespace), p.Name, func(p *corev1.Pod) {
			p.Annotations = map[string]string{corev1.PodDeletionCost: fmt.Sprint(cost)}
		})
	}
}

// setRestarts says how often containers have restarted.
func setRestarts(w *world, g *generator) {
	for _, p := range w.ordered() {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", RestartCount: int32(g.IntN(3))}, {Name: "d", RestartCount: int32(g.IntN(3))}}
		w.Put(&p)
	}
}

func (l *replicaSetWorld) describe(w *world, out *strings.Builder) {
	rs, err := w.Client.AppsV1().ReplicaSets(w.namespace).Get(context.Background(), workloadName, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	s := rs.Status
	fmt.Fprintf(out, "  set observed=%v replicas=%d labeled=%d ready=%d available=%d terminating=%s conditions=%d\n",
		s.ObservedGeneration == rs.Generation, s.Replicas, s.FullyLabeledReplicas, s.ReadyReplicas, s.AvailableReplicas,
		number(s.TerminatingReplicas), len(s.Conditions))
	w.describePods(out, func(p *corev1.Pod) string {
		return fmt.Sprintf("app=%s cost=%s restarts=%s %s", p.Labels["app"], p.Annotations[corev1.PodDeletionCost], restarts(p), look(p))
	})
}

func restarts(p *corev1.Pod) (counts string) {
	for _, c := range p.Status.ContainerStatuses {
		counts += fmt.Sprint(c.RestartCount)
	}
	return counts
}
