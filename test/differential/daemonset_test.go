package differential

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// daemonWorld is a DaemonSet on the nodes that all worlds share.
type daemonWorld struct{ first *appsv1.DaemonSet }

func newDaemonSet(g *generator) workload {
	s := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: workloadName, Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "1"}}}
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": workloadName}}
	s.Spec.Template = template(g)
	s.Spec.Template.Spec.NodeSelector = zone(g)
	s.Spec.RevisionHistoryLimit = new(int32(g.IntN(4)))
	s.Spec.MinReadySeconds = minReadySeconds(g)
	s.Spec.UpdateStrategy = daemonStrategy(g)
	return &daemonWorld{s}
}

// zone is where its pods are, from its begin on: all nodes of a world are alike, because upstream goes
// through them by chance.
func zone(g *generator) map[string]string {
	if g.chance(3) {
		return map[string]string{"zone": fmt.Sprint(g.IntN(3))} // zone 2 has no node
	}
	return nil
}

func daemonStrategy(g *generator) appsv1.DaemonSetUpdateStrategy {
	if g.chance(5) {
		return appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
	}
	surge, unavailable := intstr.FromInt32(0), intstr.FromInt32(int32(1+g.IntN(3)))
	if g.chance(3) {
		surge, unavailable = unavailable, surge
	}
	if g.chance(4) {
		unavailable, surge = intstr.FromString(fmt.Sprintf("%d%%", 1+g.IntN(100))), intstr.FromInt32(0)
	}
	return appsv1.DaemonSetUpdateStrategy{
		Type:          appsv1.RollingUpdateDaemonSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxSurge: &surge, MaxUnavailable: &unavailable},
	}
}

func (l *daemonWorld) create(w *world) {
	s := l.first.DeepCopy()
	s.Namespace = w.namespace
	if _, err := w.Client.AppsV1().DaemonSets(w.namespace).Create(context.Background(), s, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// change does what the API does besides: it counts the templates in an annotation.
func (l *daemonWorld) change(f func(s *appsv1.DaemonSet)) func(w *world) {
	return func(w *world) {
		sets := w.Client.AppsV1().DaemonSets(w.namespace)
		s, err := sets.Get(context.Background(), workloadName, metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		was := s.Spec.Template.String()
		f(s)
		if s.Spec.Template.String() != was {
			s.Annotations[appsv1.DeprecatedTemplateGeneration] = fmt.Sprint(s.Generation + 1)
		}
		if _, err := sets.Update(context.Background(), s, metav1.UpdateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (l *daemonWorld) edit(g *generator) (string, func(w *world)) {
	next, roll, minReady := template(g), daemonStrategy(g), minReadySeconds(g)
	switch g.IntN(6) {
	case 0, 1:
		return fmt.Sprintf("min ready %d", minReady), l.change(func(s *appsv1.DaemonSet) { s.Spec.MinReadySeconds = minReady })
	case 2:
		return "strategy " + roll.String(), l.change(func(s *appsv1.DaemonSet) { s.Spec.UpdateStrategy = roll })
	default:
		return next.Spec.Containers[0].Image, l.change(func(s *appsv1.DaemonSet) { s.Spec.Template.Spec.Containers = next.Spec.Containers })
	}
}

// actTime: upstream looks again for availability later than it could if pods become ready one after the other.
func (l *daemonWorld) actTime() time.Duration { return 0 }

func (l *daemonWorld) ends() (end, succeed float64) { return 0.15, 0.3 }

func (l *daemonWorld) excuse(string, string) string { return "" }

// remind: upstream's queue keeps one time for a set, the earliest. When pods become ready one after the other, the
// later ones are forgotten: it looks when the first has been ready for minReadySeconds, and then after the next event.
func (l *daemonWorld) remind(w *world) {
	l.change(func(s *appsv1.DaemonSet) { s.Annotations["reminded"] = time.Now().String() })(w)
}

func (l *daemonWorld) describe(w *world, out *strings.Builder) {
	set, err := w.Client.AppsV1().DaemonSets(w.namespace).Get(context.Background(), workloadName, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	s := set.Status
	fmt.Fprintf(out, "  set observed=%v desired=%d current=%d misscheduled=%d updated=%d ready=%d available=%d unavailable=%d collisions=%s conditions=%d\n",
		s.ObservedGeneration == set.Generation, s.DesiredNumberScheduled, s.CurrentNumberScheduled, s.NumberMisscheduled,
		s.UpdatedNumberScheduled, s.NumberReady, s.NumberAvailable, s.NumberUnavailable, number(s.CollisionCount), len(s.Conditions))
	w.describeRevisions(out)
	w.describePods(out, func(p *corev1.Pod) string {
		return fmt.Sprintf("tolerations=%d %s", len(p.Spec.Tolerations), look(p))
	})
}
