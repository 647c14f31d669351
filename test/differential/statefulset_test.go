package differential

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// statefulWorld is a StatefulSet with its pods, claims and revisions.
type statefulWorld struct{ first *appsv1.StatefulSet }

func newStatefulSet(g *generator) workload {
	s := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Name: workloadName}}
	s.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": workloadName}}
	s.Spec.Template = template(g)
	s.Spec.ServiceName = "s"
	s.Spec.Replicas = new(int32(g.IntN(6)))
	s.Spec.RevisionHistoryLimit = new(int32(g.IntN(4)))
	s.Spec.MinReadySeconds = minReadySeconds(g)
	s.Spec.PodManagementPolicy = appsv1.OrderedReadyPodManagement
	if g.chance(2) {
		s.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	}
	s.Spec.UpdateStrategy = statefulStrategy(g)
	s.Spec.PersistentVolumeClaimRetentionPolicy = retention(g)
	if g.chance(3) {
		s.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: int32(g.IntN(3))}
	}
	if g.chance(2) {
		s.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}}}
	}
	return &statefulWorld{s}
}

func statefulStrategy(g *generator) appsv1.StatefulSetUpdateStrategy {
	if g.chance(5) {
		return appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	}
	rolling := &appsv1.RollingUpdateStatefulSetStrategy{Partition: new(int32(0))}
	if g.chance(3) {
		rolling.Partition = new(int32(g.IntN(4)))
	}
	if g.chance(2) {
		unavailable := intstr.FromInt32(int32(1 + g.IntN(3)))
		rolling.MaxUnavailable = &unavailable
	}
	return appsv1.StatefulSetUpdateStrategy{Type: appsv1.RollingUpdateStatefulSetStrategyType, RollingUpdate: rolling}
}

func retention(g *generator) *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	one := func() appsv1.PersistentVolumeClaimRetentionPolicyType {
		if g.chance(2) {
			return appsv1.DeletePersistentVolumeClaimRetentionPolicyType
		}
		return appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	}
	return &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: one(), WhenScaled: one()}
}

func (l *statefulWorld) create(w *world) {
	s := l.first.DeepCopy()
	s.Namespace = w.namespace
	if _, err := w.Client.AppsV1().StatefulSets(w.namespace).Create(context.Background(), s, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (l *statefulWorld) change(f func(s *appsv1.StatefulSet)) func(w *world) {
	return func(w *world) {
		sets := w.Client.AppsV1().StatefulSets(w.namespace)
		s, err := sets.Get(context.Background(), workloadName, metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		f(s)
		if _, err := sets.Update(context.Background(), s, metav1.UpdateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (l *statefulWorld) edit(g *generator) (string, func(w *world)) {
	replicas, next, roll, keep := int32(g.IntN(8)), template(g), statefulStrategy(g), retention(g)
	switch g.IntN(6) {
	case 0:
		return fmt.Sprintf("scale to %d", replicas), l.change(func(s *appsv1.StatefulSet) { s.Spec.Replicas = &replicas })
	case 1:
		return fmt.Sprintf("scale to %d and %s", replicas, next.Spec.Containers[0].Image), l.change(func(s *appsv1.StatefulSet) {
			s.Spec.Replicas, s.Spec.Template = &replicas, next
		})
	case 2:
		return "strategy " + roll.String(), l.change(func(s *appsv1.StatefulSet) { s.Spec.UpdateStrategy = roll })
	case 3:
		return "retention " + keep.String(), l.change(func(s *appsv1.StatefulSet) { s.Spec.PersistentVolumeClaimRetentionPolicy = keep })
	default:
		return next.Spec.Containers[0].Image, l.change(func(s *appsv1.StatefulSet) { s.Spec.Template = next })
	}
}

func (l *statefulWorld) actTime() time.Duration { return 50 * time.Millisecond }

func (l *statefulWorld) ends() (end, succeed float64) { return 0.15, 0.3 }

// endedPod is a pod that has ended and that nobody has deleted.
var endedPod = regexp.MustCompile(`(?m)^  1 pod (\S+) .* (Failed|Succeeded)[^\n]* apps`)

// excuse: an ordered set of ours removes a surplus pod that has ended; upstream's waits until it is available, which it
// never will be (controllers/statefulset, doc.go).
func (l *statefulWorld) excuse(ours, upstream string) string {
	for _, m := range endedPod.FindAllStringSubmatch(upstream, -1) {
		if !strings.Contains(m[0], " deleted") && !strings.Contains(ours, m[0]) {
			return "upstream's ordered set waits for a surplus pod that has ended"
		}
	}
	if lostRevision(ours, upstream) {
		return "upstream lost a revision that is in use"
	}
	return ""
}

var (
	revisionLine = regexp.MustCompile(`(?m)^  revision (\S+) (\d+) .*\n`)
	currentField = regexp.MustCompile(` current=\d+ (\S+) `)
)

// lostRevision: upstream renumbers the revision that is rolled back to. If its cache does not show that yet, its next
// pass meets a conflict, loses the revision's name in trying again (history.UpdateControllerRevision), fails, and then
// trims the history as if neither the current nor the update revision were in use (UpdateStatefulSet).
func lostRevision(ours, upstream string) bool {
	without := func(state string) string {
		return currentField.ReplaceAllString(revisionLine.ReplaceAllString(state, ""), " ")
	}
	if without(ours) != without(upstream) {
		return false
	}
	current := currentField.FindStringSubmatch(ours)[1]
	for _, m := range revisionLine.FindAllStringSubmatch(ours, -1) {
		if m[1] == current && !strings.Contains(upstream, m[0]) {
			return true
		}
	}
	return false
}

func (l *statefulWorld) describe(w *world, out *strings.Builder) {
	ctx := context.Background()
	set, err := w.Client.AppsV1().StatefulSets(w.namespace).Get(ctx, workloadName, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	s := set.Status
	fmt.Fprintf(out, "  set observed=%v replicas=%d ready=%d available=%d current=%d %s updated=%d %s collisions=%s conditions=%d\n",
		s.ObservedGeneration == set.Generation, s.Replicas, s.ReadyReplicas, s.AvailableReplicas, s.CurrentReplicas, s.CurrentRevision,
		s.UpdatedReplicas, s.UpdateRevision, number(s.CollisionCount), len(s.Conditions))
	w.describeRevisions(out)
	claims, err := w.Client.CoreV1().PersistentVolumeClaims(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range claims.Items {
		fmt.Fprintf(out, "  claim %s labels=%v deleted=%v", c.Name, c.Labels, c.DeletionTimestamp != nil)
		for _, o := range c.OwnerReferences {
			fmt.Fprintf(out, " owner=%s %s", o.Kind, o.Name)
		}
		out.WriteString("\n")
	}
	w.describePods(out, func(p *corev1.Pod) string {
		return fmt.Sprintf("%s host=%s subdomain=%s volumes=%d %s", p.Name, p.Spec.Hostname, p.Spec.Subdomain, len(p.Spec.Volumes), look(p))
	})
}

func (w *world) describeRevisions(out *strings.Builder) {
	list, err := w.Client.AppsV1().ControllerRevisions(w.namespace).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range list.Items {
		fmt.Fprintf(out, "  revision %s %d labels=%v\n", r.Name, r.Revision, r.Labels)
	}
}
