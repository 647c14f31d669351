package differential

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// deploymentWorld is a Deployment with its ReplicaSets.
type deploymentWorld struct{ first *appsv1.Deployment }

func newDeployment(g *generator) workload {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: workloadName}}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": workloadName}}
	d.Spec.Template = template(g)
	d.Spec.Replicas = new(int32(g.IntN(12)))
	d.Spec.MinReadySeconds = minReadySeconds(g)
	d.Spec.ProgressDeadlineSeconds = new(int32(30 + g.IntN(90)))
	d.Spec.RevisionHistoryLimit = new(int32(g.IntN(4)))
	d.Spec.Strategy = strategy(g)
	return &deploymentWorld{d}
}

func strategy(g *generator) appsv1.DeploymentStrategy {
	if g.chance(4) {
		return appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
	}
	surge, unavailable := bound(g), bound(g)
	if surge.IntValue() == 0 && unavailable.IntValue() == 0 && surge.Type == intstr.Int && unavailable.Type == intstr.Int {
		surge = intstr.FromInt32(1)
	}
	return appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxSurge: &surge, MaxUnavailable: &unavailable},
	}
}

func bound(g *generator) intstr.IntOrString {
	if g.chance(2) {
		return intstr.FromString(fmt.Sprintf("%d%%", 1+g.IntN(100)))
	}
	return intstr.FromInt32(int32(g.IntN(5)))
}

// template is one of some that differ, with what defaults would add.
func template(g *generator) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": workloadName}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: corev1.DefaultSchedulerName,
			TerminationGracePeriodSeconds: new(int64(30)), SecurityContext: &corev1.PodSecurityContext{},
			Containers: []corev1.Container{{
				Name: "c", Image: fmt.Sprintf("image:%d", g.IntN(4)), ImagePullPolicy: corev1.PullIfNotPresent,
				TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			}},
		},
	}
}

func (l *deploymentWorld) create(w *world) {
	d := l.first.DeepCopy()
	d.Namespace = w.namespace
	if _, err := w.Client.AppsV1().Deployments(w.namespace).Create(context.Background(), d, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (l *deploymentWorld) change(f func(d *appsv1.Deployment)) func(w *world) {
	return func(w *world) {
		deployments := w.Client.AppsV1().Deployments(w.namespace)
		d, err := deployments.Get(context.Background(), workloadName, metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		f(d)
		if _, err := deployments.Update(context.Background(), d, metav1.UpdateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (l *deploymentWorld) edit(g *generator) (string, func(w *world)) {
	replicas, next, roll, paused := int32(g.IntN(15)), template(g), strategy(g), g.chance(2)
	switch g.IntN(6) {
	case 0:
		return fmt.Sprintf("scale to %d", replicas), l.change(func(d *appsv1.Deployment) { d.Spec.Replicas = &replicas })
	case 1:
		return fmt.Sprintf("scale to %d and %s", replicas, next.Spec.Containers[0].Image), l.change(func(d *appsv1.Deployment) {
			d.Spec.Replicas, d.Spec.Template = &replicas, next
		})
	case 2:
		return fmt.Sprintf("paused %v", paused), l.change(func(d *appsv1.Deployment) { d.Spec.Paused = paused })
	case 3:
		return fmt.Sprintf("strategy %s", roll.String()), l.change(func(d *appsv1.Deployment) { d.Spec.Strategy = roll })
	default:
		return next.Spec.Containers[0].Image, l.change(func(d *appsv1.Deployment) { d.Spec.Template = next })
	}
}

// actTime: which of two pods that look alike goes is chance.
func (l *deploymentWorld) actTime() time.Duration { return 0 }

func (l *deploymentWorld) ends() (end, succeed float64) { return 0.15, 0 }

// goesOn are reasons of Progressing that say the same: which of them stands depends on whether upstream has seen the
// ReplicaSet that it made when it judges progress.
var goesOn = map[string]string{"NewReplicaSetCreated": "GoesOn", "FoundNewReplicaSet": "GoesOn", "ReplicaSetUpdated": "GoesOn"}

// excuse: whether a rollout that has begun counts as progress depends on whether the counts in between are seen; and upstream counts
// pods as available of a ReplicaSet that it has scaled down in the same moment, so it may end an old one that is needed.
func (l *deploymentWorld) excuse(ours, upstream string) string {
	done, begun := "Progressing=True NewReplicaSetAvailable", "Progressing=True GoesOn"
	if strings.ReplaceAll(ours, done, begun) == strings.ReplaceAll(upstream, done, begun) {
		return "the reason of Progressing depends on counts that one side did not see"
	}
	if overdue := "Progressing=False ProgressDeadlineExceeded"; strings.ReplaceAll(ours, overdue, begun) == strings.ReplaceAll(upstream, overdue, begun) {
		return seldomExcuse
	}
	if keepsItsMinimum(ours, upstream) {
		return "upstream went below its own minimum of available pods"
	}
	if scalesForEver(upstream) && !scalesForEver(ours) {
		return "upstream does not note a new scale in a ReplicaSet that has this size already, and goes on scaling for ever"
	}
	return ""
}

var setSizes = regexp.MustCompile(`desired=(\d+) max=\d+ wants=([1-9]\d*) `)

// scalesForEver tells whether the only ReplicaSet with pods was last scaled for another size than it has.
func scalesForEver(side string) bool {
	sets := setSizes.FindAllStringSubmatch(side, -1)
	return len(sets) == 1 && sets[0][1] != sets[0][2]
}

var deploymentCounts = regexp.MustCompile(`deployment revision=\S+ observed=true replicas=(\d+) .* available=(\d+) `)

// keepsItsMinimum tells whether upstream is below the minimum and ours is not, and all that ours has more are available pods.
func keepsItsMinimum(ours, upstream string) bool {
	a, b := deploymentCounts.FindStringSubmatch(ours), deploymentCounts.FindStringSubmatch(upstream)
	if a == nil || b == nil || !strings.Contains(ours, "Available=True") || !strings.Contains(upstream, "Available=False") {
		return false
	}
	more := func(i int) int {
		x, _ := strconv.Atoi(a[i])
		y, _ := strconv.Atoi(b[i])
		return x - y
	}
	return more(1) > 0 && more(1) == more(2)
}

func (l *deploymentWorld) describe(w *world, out *strings.Builder) {
	ctx := context.Background()
	d, err := w.Client.AppsV1().Deployments(w.namespace).Get(ctx, workloadName, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	s := d.Status
	fmt.Fprintf(out, "  deadline=%ds minReady=%d %s\n", *d.Spec.ProgressDeadlineSeconds, d.Spec.MinReadySeconds, time.Now().Format(time.TimeOnly))
	fmt.Fprintf(out, "  deployment revision=%s observed=%v replicas=%d updated=%d ready=%d available=%d unavailable=%d terminating=%s collisions=%s\n",
		d.Annotations["deployment.kubernetes.io/revision"], s.ObservedGeneration == d.Generation, s.Replicas, s.UpdatedReplicas, s.ReadyReplicas,
		s.AvailableReplicas, s.UnavailableReplicas, number(s.TerminatingReplicas), number(s.CollisionCount))
	slices.SortFunc(s.Conditions, func(a, b appsv1.DeploymentCondition) int { return cmp.Compare(a.Type, b.Type) })
	for _, c := range s.Conditions {
		fmt.Fprintf(out, "  condition %s=%s %s\n", c.Type, c.Status, cmp.Or(goesOn[c.Reason], c.Reason))
	}
	sets, err := w.Client.AppsV1().ReplicaSets(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(sets.Items, func(a, b appsv1.ReplicaSet) int { return cmp.Compare(a.Name, b.Name) })
	for _, rs := range sets.Items {
		a := func(name string) string { return rs.Annotations["deployment.kubernetes.io/"+name] }
		fmt.Fprintf(out, "  %s %s revision=%s history=%q desired=%s max=%s wants=%d minReady=%d has=%d labeled=%d ready=%d available=%d terminating=%s\n",
			rs.Name, rs.Spec.Template.Spec.Containers[0].Image, a("revision"), a("revision-history"), a("desired-replicas"), a("max-replicas"), *rs.Spec.Replicas, rs.Spec.MinReadySeconds,
			rs.Status.Replicas, rs.Status.FullyLabeledReplicas, rs.Status.ReadyReplicas, rs.Status.AvailableReplicas, number(rs.Status.TerminatingReplicas))
	}
	w.describePods(out, look)
}

func number(n *int32) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}
