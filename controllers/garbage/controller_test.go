package garbage

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func kinds() []reconciletest.Kind {
	return []reconciletest.Kind{
		{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespaced: true},
		{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Kind: "ConfigMap", Namespaced: true},
		{Resource: corev1.SchemeGroupVersion.WithResource("nodes"), Kind: "Node"},
		{Resource: appsv1.SchemeGroupVersion.WithResource("replicasets"), Kind: "ReplicaSet", Namespaced: true},
		{Resource: appsv1.SchemeGroupVersion.WithResource("deployments"), Kind: "Deployment", Namespaced: true},
	}
}

// bubble runs a test with the collector.
func bubble(t *testing.T, body func(t *testing.T, w *reconciletest.World)) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		monitors := Monitors{}
		for _, k := range kinds() {
			informer, err := w.Informers.ForResource(k.Resource)
			if err != nil {
				t.Fatal(err)
			}
			monitors[k.Resource] = informer.Informer()
		}
		env := w.Env()
		env.Discovery, env.Metadata = w.Discovery(kinds()), w.Metadata(kinds())
		w.RunIn(env, New(func() Monitors { return monitors }))
		body(t, w)
	})
}

func ref(kind, name string, uid types.UID, block bool) metav1.OwnerReference {
	version := "v1"
	if kind == "ReplicaSet" || kind == "Deployment" {
		version = "apps/v1"
	}
	return metav1.OwnerReference{APIVersion: version, Kind: kind, Name: name, UID: uid, BlockOwnerDeletion: &block}
}

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name)}}
}

func set(name string, owners ...metav1.OwnerReference) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name), OwnerReferences: owners}}
}

func pod(name string, owners ...metav1.OwnerReference) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID(name), OwnerReferences: owners}}
}

// names lists everything that exists, as kind/name.
func names(t *testing.T, w *reconciletest.World) string {
	t.Helper()
	var out []string
	for _, k := range kinds() {
		list, err := w.Metadata(kinds()).Resource(k.Resource).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			out = append(out, k.Kind+"/"+o.Name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func add(w *reconciletest.World, objects ...runtime.Object) {
	for _, o := range objects {
		reconciletest.Add(w, o)
	}
	w.Settle()
}

func del(t *testing.T, w *reconciletest.World, name string, policy metav1.DeletionPropagation) {
	t.Helper()
	err := w.Client.AppsV1().Deployments("ns").Delete(t.Context(), name, metav1.DeleteOptions{PropagationPolicy: &policy})
	if err != nil {
		t.Fatal(err)
	}
	w.Settle()
}

func tree(w *reconciletest.World, block bool) {
	add(w, deployment("d"), set("rs", ref("Deployment", "d", "d", block)), pod("p1", ref("ReplicaSet", "rs", "rs", block)), pod("p2", ref("ReplicaSet", "rs", "rs", block)))
}

func assertQuiet(t *testing.T, w *reconciletest.World) {
	t.Helper()
	w.Writes()
	w.Settle()
	if writes := w.Writes(); len(writes) > 0 {
		t.Errorf("an unchanged world was written to: %v", writes)
	}
}

func TestBackgroundCollectsTheTree(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		tree(w, true)
		if got := names(t, w); got != "Deployment/d Pod/p1 Pod/p2 ReplicaSet/rs" {
			t.Fatalf("collected a living tree: %s", got)
		}
		assertQuiet(t, w)
		del(t, w, "d", metav1.DeletePropagationBackground)
		if got := names(t, w); got != "" {
			t.Errorf("left: %s", got)
		}
	})
}

func TestForegroundWaitsForBlockingDependents(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		tree(w, true)
		w.RunPods(true) // placed pods end in two steps
		w.Settle()
		del(t, w, "d", metav1.DeletePropagationForeground)
		if got := names(t, w); got != "Deployment/d Pod/p1 Pod/p2 ReplicaSet/rs" {
			t.Errorf("owners went before their pods: %s", got)
		}
		assertQuiet(t, w)
		w.RunPods(true)
		w.Settle()
		if got := names(t, w); got != "" {
			t.Errorf("left: %s", got)
		}
	})
}

func TestOrphanLetsGo(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		tree(w, true)
		del(t, w, "d", metav1.DeletePropagationOrphan)
		if got := names(t, w); got != "Pod/p1 Pod/p2 ReplicaSet/rs" {
			t.Errorf("left: %s", got)
		}
		rs, err := w.Client.AppsV1().ReplicaSets("ns").Get(t.Context(), "rs", metav1.GetOptions{})
		if err != nil || len(rs.OwnerReferences) != 0 {
			t.Errorf("still owned: %v %v", rs.OwnerReferences, err)
		}
		assertQuiet(t, w)
	})
}

func TestOwnersThatWereNeverThere(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		add(w,
			pod("gone", ref("ReplicaSet", "rs", "no-such-uid", false)),
			set("rs"),
			pod("one-left", ref("ReplicaSet", "rs", "no-such-uid", false), ref("ReplicaSet", "rs", "rs", false)),
			pod("unknown-kind", metav1.OwnerReference{APIVersion: "nobody.example/v1", Kind: "Serves", Name: "x", UID: "x"}),
		)
		if got := names(t, w); got != "Pod/one-left Pod/unknown-kind ReplicaSet/rs" {
			t.Errorf("left: %s", got)
		}
		left, err := w.Client.CoreV1().Pods("ns").Get(t.Context(), "one-left", metav1.GetOptions{})
		if err != nil || len(left.OwnerReferences) != 1 || left.OwnerReferences[0].UID != "rs" {
			t.Errorf("owners %v, %v", left.OwnerReferences, err)
		}
	})
}

// An owner reference means a kind, a name and a uid in the object's own namespace. What has the uid alone is not the owner.
func TestReferencesToWhatIsNotThere(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		foreign := deployment("far")
		foreign.Namespace = "other"
		add(w, foreign, deployment("d"))
		add(w,
			pod("good", ref("Deployment", "d", "d", false)),
			pod("kind", ref("ReplicaSet", "d", "d", false)),
			pod("name", ref("Deployment", "e", "d", false)),
			pod("namespace", ref("Deployment", "far", "far", false)),
			pod("one-of-two", ref("Deployment", "d", "d", false), ref("Deployment", "far", "far", false)),
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n", OwnerReferences: []metav1.OwnerReference{ref("Deployment", "d", "d", false)}}},
		)
		if got := names(t, w); got != "Deployment/d Deployment/far Node/n Pod/good Pod/one-of-two" {
			t.Errorf("left: %s", got)
		}
		want := `OwnerRefInvalidNamespace ownerRef [apps/v1/Deployment, namespace: ns, name: far, uid: far] does not exist in namespace "ns"`
		if events := w.Events.List(); !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, want) }) {
			t.Errorf("events: %v", events)
		}
	})
}

// A reference that turns wrong is judged as a new one.
func TestReferenceThatTurnsWrong(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		add(w, deployment("d"), pod("p", ref("Deployment", "d", "d", false)))
		if _, err := w.Client.CoreV1().Pods("ns").Update(t.Context(), pod("p", ref("Deployment", "e", "d", false)), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if got := names(t, w); got != "Deployment/d" {
			t.Errorf("left: %s", got)
		}
	})
}

// What one reference does not find says nothing of another with the same uid, also while the owner's kind has no monitor.
func TestAbsenceIsOfOneReference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		pods, err := w.Informers.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
		if err != nil {
			t.Fatal(err)
		}
		env := w.Env()
		env.Discovery, env.Metadata = w.Discovery(kinds()), w.Metadata(kinds())
		monitors := Monitors{corev1.SchemeGroupVersion.WithResource("pods"): pods.Informer()}
		w.RunIn(env, New(func() Monitors { return monitors }))
		far := pod("far", ref("Deployment", "d", "d", false))
		far.Namespace = "other"
		add(w, deployment("d"), far, pod("name", ref("Deployment", "e", "d", false)), pod("kind", ref("ReplicaSet", "d", "d", false)))
		add(w, pod("good", ref("Deployment", "d", "d", false)))
		if got := names(t, w); got != "Deployment/d Pod/good" {
			t.Errorf("left: %s", got)
		}
	})
}

// The first object of a kind owns another, and is gone before its kind has a monitor: nobody tells of its end.
func TestOwnersThatNoMonitorSaw(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		pods, err := w.Informers.ForResource(corev1.SchemeGroupVersion.WithResource("pods"))
		if err != nil {
			t.Fatal(err)
		}
		env := w.Env()
		env.Discovery, env.Metadata = w.Discovery(kinds()), w.Metadata(kinds())
		monitors := Monitors{corev1.SchemeGroupVersion.WithResource("pods"): pods.Informer()}
		w.RunIn(env, New(func() Monitors { return monitors }))
		add(w, deployment("d"), pod("p", ref("Deployment", "d", "d", false)))
		if got := names(t, w); got != "Deployment/d Pod/p" {
			t.Fatalf("left: %s", got)
		}
		del(t, w, "d", metav1.DeletePropagationBackground)
		time.Sleep(monitorInterval)
		w.Settle()
		if got := names(t, w); got != "" {
			t.Errorf("left: %s", got)
		}
	})
}

// The monitor of a kind goes with its last object, before it told of that object's end.
func TestOwnersWhoseMonitorWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		monitors := Monitors{}
		for _, k := range kinds() {
			informer, err := w.Informers.ForResource(k.Resource)
			if err != nil {
				t.Fatal(err)
			}
			monitors[k.Resource] = informer.Informer()
		}
		var left atomic.Bool
		env := w.Env()
		env.Discovery, env.Metadata = w.Discovery(kinds()), w.Metadata(kinds())
		w.RunIn(env, New(func() Monitors {
			if left.Load() {
				return Monitors{corev1.SchemeGroupVersion.WithResource("pods"): monitors[corev1.SchemeGroupVersion.WithResource("pods")]}
			}
			return monitors
		}))
		add(w, deployment("d"), pod("p", ref("Deployment", "d", "d", false)))
		left.Store(true)
		w.Hold()
		del(t, w, "d", metav1.DeletePropagationBackground)
		time.Sleep(monitorInterval)
		w.Settle()
		if got := names(t, w); got != "" {
			t.Errorf("left: %s", got)
		}
	})
}

func TestForegroundCycleEnds(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		add(w, set("a"), set("b", ref("ReplicaSet", "a", "a", true)))
		closed := set("a", ref("ReplicaSet", "b", "b", true)) // made so at once, it would be without an owner until b is there
		if _, err := w.Client.AppsV1().ReplicaSets("ns").Update(t.Context(), closed, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		policy := metav1.DeletePropagationForeground
		if err := w.Client.AppsV1().ReplicaSets("ns").Delete(t.Context(), "a", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		if got := names(t, w); got != "" {
			t.Errorf("left: %s", got)
		}
	})
}

func TestDecide(t *testing.T) {
	one := []metav1.OwnerReference{{}}
	for _, c := range []struct {
		name string
		o    owners
		want decision
	}{
		{"no owners", owners{}, keep},
		{"solid", owners{solid: one}, keep},
		{"solid and absent", owners{solid: one, absent: one}, trim},
		{"solid and waiting", owners{solid: one, waiting: one}, trim},
		{"absent", owners{absent: one}, remove},
		{"waiting", owners{waiting: one}, remove},
		{"foreign", owners{foreign: one}, keep},
		{"foreign and absent", owners{foreign: one, absent: one}, keep},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.o.decide(); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
