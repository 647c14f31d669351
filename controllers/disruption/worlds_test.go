package disruption

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// world is a namespace of budgets, pods and their controllers, which chance changes.
type world struct {
	*reconciletest.World
	t      *testing.T
	random *rand.Rand
	// replicas are the true sizes of those that decide, by uid; decides is which of them does for a controller of pods.
	replicas map[types.UID]int32
	decides  map[types.UID]types.UID
	refs     []metav1.OwnerReference // what pods are made of
	born     int
}

func ref(kind, version, name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: uid, Controller: new(true)}
}

// populate makes a Deployment, a ReplicaSet of nobody, one of a custom controller, a StatefulSet and a ReplicationController.
func (w *world) populate() {
	size := func(uid types.UID) *int32 {
		n := int32(w.random.IntN(6))
		w.replicas[uid], w.decides[uid] = n, uid
		return &n
	}
	named := func(name string, owners ...metav1.OwnerReference) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), OwnerReferences: owners}
	}
	reconciletest.Add(w.World, &appsv1.Deployment{ObjectMeta: named("d"), Spec: appsv1.DeploymentSpec{Replicas: size("d")}})
	for _, name := range []string{"d-1", "d-2"} {
		reconciletest.Add(w.World, &appsv1.ReplicaSet{ObjectMeta: named(name, ref("Deployment", "apps/v1", "d", "d")), Spec: appsv1.ReplicaSetSpec{Replicas: size("x")}})
		w.decides[types.UID(name)] = "d"
	}
	reconciletest.Add(w.World, &appsv1.ReplicaSet{ObjectMeta: named("rs"), Spec: appsv1.ReplicaSetSpec{Replicas: size("rs")}})
	reconciletest.Add(w.World, &appsv1.ReplicaSet{ObjectMeta: named("ro", ref("Rollout", "e.com/v1", "r", "r")), Spec: appsv1.ReplicaSetSpec{Replicas: size("ro")}})
	reconciletest.Add(w.World, &appsv1.StatefulSet{ObjectMeta: named("ss"), Spec: appsv1.StatefulSetSpec{Replicas: size("ss")}})
	reconciletest.Add(w.World, &corev1.ReplicationController{ObjectMeta: named("rc"), Spec: corev1.ReplicationControllerSpec{Replicas: size("rc")}})
	delete(w.replicas, "x")
	for _, name := range []string{"d-1", "d-2", "rs", "ro"} {
		w.refs = append(w.refs, ref("ReplicaSet", "apps/v1", name, types.UID(name)))
	}
	w.refs = append(w.refs, ref("StatefulSet", "apps/v1", "ss", "ss"), ref("ReplicationController", "v1", "rc", "rc"))
}

// change makes one thing different.
func (w *world) change() {
	pods := w.Pods("ns")
	var pod *corev1.Pod
	if len(pods) > 0 {
		pod = &pods[w.random.IntN(len(pods))]
	}
	switch n := w.random.IntN(12); {
	case n < 3 || pod == nil:
		w.born++
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("p%d", w.born), Labels: map[string]string{"app": w.app()}}, Spec: corev1.PodSpec{NodeName: "n"}}
		if w.random.IntN(12) > 0 {
			p.OwnerReferences = []metav1.OwnerReference{w.refs[w.random.IntN(len(w.refs))]}
		}
		reconciletest.SetReady(p, w.random.IntN(3) > 0)
		reconciletest.Add(w.World, p)
	case n < 6:
		reconciletest.SetReady(pod, w.random.IntN(3) > 0)
		w.Put(pod)
	case n == 6:
		pod.DeletionTimestamp = new(metav1.Now())
		w.Put(pod)
	case n == 7:
		w.RemovePod(pod)
	case n == 8:
		pod.Labels = map[string]string{"app": w.app()}
		w.Put(pod)
	case n == 9:
		w.resize()
	default:
		synctest.Wait() // else the controller may write at the same time
		w.setBudget(fmt.Sprintf("b%d", w.random.IntN(3)), pod.Name)
	}
}

func (w *world) app() string { return []string{"web", "db"}[w.random.IntN(2)] }

// resize scales the Deployment or the StatefulSet.
func (w *world) resize() {
	n := int32(w.random.IntN(6))
	d, err := w.Client.AppsV1().Deployments("ns").Get(w.t.Context(), "d", metav1.GetOptions{})
	if err == nil && w.random.IntN(2) == 0 {
		d.Spec.Replicas, w.replicas["d"] = &n, n
		_, err = w.Client.AppsV1().Deployments("ns").Update(w.t.Context(), d, metav1.UpdateOptions{})
	} else if err == nil {
		var ss *appsv1.StatefulSet
		if ss, err = w.Client.AppsV1().StatefulSets("ns").Get(w.t.Context(), "ss", metav1.GetOptions{}); err == nil {
			ss.Spec.Replicas, w.replicas["ss"] = &n, n
			_, err = w.Client.AppsV1().StatefulSets("ns").Update(w.t.Context(), ss, metav1.UpdateOptions{})
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// setBudget makes a budget, changes what it asks for, or notes an eviction in it.
func (w *world) setBudget(name, pod string) {
	client := w.Client.PolicyV1().PodDisruptionBudgets("ns")
	numbers := []*intstr.IntOrString{new(intstr.FromInt32(int32(w.random.IntN(4)))), new(intstr.FromString(fmt.Sprintf("%d%%", w.random.IntN(101)))), nil}
	var spec policyv1.PodDisruptionBudgetSpec
	spec.Selector = []*metav1.LabelSelector{{}, {MatchLabels: map[string]string{"app": "web"}}, {MatchLabels: map[string]string{"app": "db"}}, nil}[w.random.IntN(4)]
	if w.random.IntN(2) == 0 {
		spec.MinAvailable = numbers[w.random.IntN(3)]
	} else {
		spec.MaxUnavailable = numbers[w.random.IntN(3)]
	}
	b, err := client.Get(w.t.Context(), name, metav1.GetOptions{})
	switch {
	case err != nil:
		reconciletest.Add(w.World, &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: spec})
		return
	case w.random.IntN(2) == 0:
		b.Spec = spec
		_, err = client.Update(w.t.Context(), b, metav1.UpdateOptions{})
	default:
		b.Status.DisruptedPods = map[string]metav1.Time{pod: metav1.Now(), "unheard-of": metav1.Now()}
		_, err = client.UpdateStatus(w.t.Context(), b, metav1.UpdateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// model is the status of a budget, from the words of the API's documentation.
func (w *world) model(b *policyv1.PodDisruptionBudget) policyv1.PodDisruptionBudgetStatus {
	var count, healthy int32
	deciders, sum := map[types.UID]bool{}, int32(0)
	noted := map[string]metav1.Time{}
	for _, p := range w.Pods("ns") {
		if b.Spec.Selector == nil || len(b.Spec.Selector.MatchLabels) > 0 && b.Spec.Selector.MatchLabels["app"] != p.Labels["app"] {
			continue
		}
		count++
		if len(p.OwnerReferences) > 0 && !deciders[w.decides[p.OwnerReferences[0].UID]] {
			deciders[w.decides[p.OwnerReferences[0].UID]] = true
			sum += w.replicas[w.decides[p.OwnerReferences[0].UID]]
		}
		granted, goes := b.Status.DisruptedPods[p.Name]
		if goes = goes && time.Since(granted.Time) < 2*time.Minute && p.DeletionTimestamp == nil; goes {
			noted[p.Name] = granted
		}
		if !goes && p.DeletionTimestamp == nil && p.Status.Conditions[0].Status == corev1.ConditionTrue {
			healthy++
		}
	}
	of := func(n *intstr.IntOrString) int32 {
		if n.Type == intstr.Int {
			return n.IntVal
		}
		var percent float64
		_, _ = fmt.Sscanf(n.StrVal, "%f%%", &percent)
		return int32(math.Ceil(percent * float64(sum) / 100))
	}
	s := policyv1.PodDisruptionBudgetStatus{ObservedGeneration: b.Generation, CurrentHealthy: healthy, DisruptedPods: noted}
	switch least, most := b.Spec.MinAvailable, b.Spec.MaxUnavailable; {
	case most != nil:
		s.ExpectedPods, s.DesiredHealthy = sum, max(0, sum-of(most))
	case least != nil && least.Type == intstr.Int:
		s.ExpectedPods, s.DesiredHealthy = count, least.IntVal
	case least != nil:
		s.ExpectedPods, s.DesiredHealthy = sum, of(least)
	}
	if s.ExpectedPods > 0 {
		s.DisruptionsAllowed = max(0, healthy-s.DesiredHealthy)
	}
	return s
}

// compare wants each budget as the model has it.
func (w *world) compare(step string) {
	w.t.Helper()
	list, err := w.Client.PolicyV1().PodDisruptionBudgets("ns").List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, b := range list.Items {
		want, got := w.model(&b), b.Status
		reason := map[bool]string{true: "SufficientPods", false: "InsufficientPods"}[want.DisruptionsAllowed > 0]
		if len(got.Conditions) != 1 || got.Conditions[0].Reason != reason || got.Conditions[0].ObservedGeneration != b.Generation {
			w.t.Fatalf("%s: %s has the conditions %+v, want %s", step, b.Name, got.Conditions, reason)
		}
		if got.Conditions = nil; len(got.DisruptedPods) == 0 {
			got.DisruptedPods = map[string]metav1.Time{}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.t.Fatalf("%s: %s %+v: %s", step, b.Name, b.Spec, diff)
		}
	}
}

// TestWorlds changes generated worlds and compares what is counted with a model, and that nothing is written after.
func TestWorlds(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			w := &world{World: reconciletest.New(t), t: t, random: rand.New(rand.NewPCG(seed, 3)), replicas: map[types.UID]int32{}, decides: map[types.UID]types.UID{}}
			w.Run(New())
			w.populate()
			for step := range 30 {
				for range 1 + w.random.IntN(3) {
					w.change()
				}
				if w.random.IntN(8) == 0 {
					time.Sleep(2 * time.Minute)
				}
				w.Settle()
				w.compare(fmt.Sprintf("seed %d, step %d", seed, step))
			}
			time.Sleep(3 * time.Minute)
			w.Settle()
			w.compare("in the end")
			w.Writes()
			time.Sleep(time.Hour)
			if writes := w.Writes(); len(writes) > 0 {
				t.Errorf("an unchanged world was written to: %v", writes)
			}
		})
	}
}
