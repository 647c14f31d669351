package differential

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// disruptionWorld is a PodDisruptionBudget of the pods of some controllers, which do not run.
type disruptionWorld struct {
	plain
	first *policyv1.PodDisruptionBudget
	pods  int
}

func newDisruption(g *generator) workload {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: workloadName}}
	setBudget(g, b)
	return &disruptionWorld{first: b}
}

func setBudget(g *generator, b *policyv1.PodDisruptionBudget) {
	b.Spec.Selector = pick(g, &metav1.LabelSelector{}, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
		&metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}, &metav1.LabelSelector{MatchLabels: map[string]string{"app": "none"}})
	b.Spec.MinAvailable, b.Spec.MaxUnavailable = nil, nil
	bound := pick(g, intstr.FromInt32(int32(g.IntN(5))), intstr.FromString(fmt.Sprintf("%d%%", g.IntN(101))))
	if g.chance(2) {
		b.Spec.MinAvailable = &bound
	} else {
		b.Spec.MaxUnavailable = &bound
	}
}

// owners have replicas, and pods that they control. The last is a kind that has no scale.
var owners = []schema.GroupVersionKind{
	appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), appsv1.SchemeGroupVersion.WithKind("Deployment"),
	appsv1.SchemeGroupVersion.WithKind("StatefulSet"), corev1.SchemeGroupVersion.WithKind("ReplicationController"),
}

func (l *disruptionWorld) create(w *world) {
	b := l.first.DeepCopy()
	b.Namespace = w.namespace
	meta := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: w.namespace} }
	d := reconciletest.Add(w.World, &appsv1.Deployment{ObjectMeta: meta("deployment"), Spec: appsv1.DeploymentSpec{Replicas: new(int32(3))}})
	of := &appsv1.ReplicaSet{ObjectMeta: meta("of-deployment"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(2))}}
	of.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(d, owners[1])}
	reconciletest.Add(w.World, of)
	reconciletest.Add(w.World, &appsv1.ReplicaSet{ObjectMeta: meta("replicaset"), Spec: appsv1.ReplicaSetSpec{Replicas: new(int32(4))}})
	reconciletest.Add(w.World, &appsv1.StatefulSet{ObjectMeta: meta("statefulset"), Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2))}})
	reconciletest.Add(w.World, &corev1.ReplicationController{ObjectMeta: meta("replicationcontroller"),
		Spec: corev1.ReplicationControllerSpec{Replicas: new(int32(1))}})
	create(w, w.Client.PolicyV1().PodDisruptionBudgets(w.namespace), b)
}

func (l *disruptionWorld) edit(g *generator) (string, func(w *world)) {
	next := &policyv1.PodDisruptionBudget{}
	setBudget(g, next)
	replicas, seed := int32(g.IntN(7)), g.Uint64()
	switch g.IntN(8) {
	case 0, 1:
		return "budget " + text1(next.Spec), func(w *world) {
			change(w, w.Client.PolicyV1().PodDisruptionBudgets(w.namespace), workloadName, func(b *policyv1.PodDisruptionBudget) { b.Spec = next.Spec })
		}
	case 2:
		return fmt.Sprintf("scale to %d", replicas), func(w *world) { l.scale(w, replicas) }
	case 3:
		return "an eviction", func(w *world) { evict(w, newGenerator(seed)) }
	case 4:
		return "pods change", func(w *world) { l.changePods(w, newGenerator(seed)) }
	default:
		l.pods++
		owner := pick(g, "replicaset", "replicaset", "of-deployment", "statefulset", "replicationcontroller", "")
		p := servicePod(g, l.pods)
		return fmt.Sprintf("pod of %q", owner), func(w *world) { addPod(w, p.DeepCopy(), owner) }
	}
}

func addPod(w *world, p *corev1.Pod, owner string) {
	p.Namespace = w.namespace
	ctx, apps := context.Background(), w.Client.AppsV1()
	var o metav1.Object
	var err error
	kind := owners[0]
	switch owner {
	case "replicaset", "of-deployment":
		o, err = apps.ReplicaSets(w.namespace).Get(ctx, owner, metav1.GetOptions{})
	case "statefulset":
		kind = owners[2]
		o, err = apps.StatefulSets(w.namespace).Get(ctx, owner, metav1.GetOptions{})
	case "replicationcontroller":
		kind = owners[3]
		o, err = w.Client.CoreV1().ReplicationControllers(w.namespace).Get(ctx, owner, metav1.GetOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if o != nil {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(o, kind)}
	}
	reconciletest.Add(w.World, p)
}

// scale changes the controllers. Ours counts after each, and upstream's when it is reminded, so it is, after each.
func (l *disruptionWorld) scale(w *world, n int32) {
	apps := w.Client.AppsV1()
	seen := func() {
		l.remind(w)
		pause(time.Millisecond) // the next reminder is another one
	}
	change(w, apps.Deployments(w.namespace), "deployment", func(d *appsv1.Deployment) { d.Spec.Replicas = &n })
	seen()
	change(w, apps.ReplicaSets(w.namespace), "replicaset", func(rs *appsv1.ReplicaSet) { rs.Spec.Replicas = &n })
	seen()
	change(w, apps.StatefulSets(w.namespace), "statefulset", func(s *appsv1.StatefulSet) { s.Spec.Replicas = &n })
	seen()
}

// remind: upstream counts again when the budget or one of its pods changes, not when a controller or a pod's labels do.
func (l *disruptionWorld) remind(w *world) {
	change(w, w.Client.PolicyV1().PodDisruptionBudgets(w.namespace), workloadName, func(b *policyv1.PodDisruptionBudget) {
		b.Annotations = map[string]string{"reminded": time.Now().String()}
	})
}

// evict enters a pod into the budget, as an eviction does.
func evict(w *world, g *generator) {
	pods := w.Pods(w.namespace)
	changeStatus(w, w.Client.PolicyV1().PodDisruptionBudgets(w.namespace), workloadName, func(b *policyv1.PodDisruptionBudget) {
		name := "gone"
		if len(pods) > 0 && !g.chance(4) {
			name = pods[g.IntN(len(pods))].Name
		}
		if b.Status.DisruptedPods == nil {
			b.Status.DisruptedPods = map[string]metav1.Time{}
		}
		b.Status.DisruptedPods[name] = metav1.NewTime(time.Now().Add(-quietTime / 2)) // it counts for two minutes: not until a step
	})
}

func (l *disruptionWorld) changePods(w *world, g *generator) {
	changePods(w, g)
	for _, p := range w.Pods(w.namespace) {
		if app := pick(g, "", "", "a", "b"); app != "" {
			change(w, w.Client.CoreV1().Pods(w.namespace), p.Name, func(p *corev1.Pod) { p.Labels["app"] = app })
		}
	}
}

func (l *disruptionWorld) describe(w *world, out *strings.Builder) {
	b, err := w.Client.PolicyV1().PodDisruptionBudgets(w.namespace).Get(context.Background(), workloadName, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	s := b.Status
	var disrupted []string
	for name := range s.DisruptedPods {
		disrupted = append(disrupted, name)
	}
	slices.Sort(disrupted)
	fmt.Fprintf(out, "  observed=%v allowed=%d healthy=%d desired=%d expected=%d disrupted=%v\n", s.ObservedGeneration == b.Generation,
		s.DisruptionsAllowed, s.CurrentHealthy, s.DesiredHealthy, s.ExpectedPods, disrupted)
	for _, c := range s.Conditions {
		fmt.Fprintf(out, "  condition %s=%s %s %q observed=%v\n", c.Type, c.Status, c.Reason, c.Message, c.ObservedGeneration == b.Generation)
	}
}
