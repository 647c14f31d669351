package namespace

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func kinds() []reconciletest.Kind {
	return []reconciletest.Kind{
		{Resource: corev1.SchemeGroupVersion.WithResource("pods"), Kind: "Pod", Namespaced: true},
		{Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Kind: "ConfigMap", Namespaced: true},
		{Resource: corev1.SchemeGroupVersion.WithResource("nodes"), Kind: "Node"},
		{Resource: appsv1.SchemeGroupVersion.WithResource("deployments"), Kind: "Deployment", Namespaced: true},
	}
}

// bubble runs a test with a namespace "ns" that holds a bit of everything, and
// one "other" that must not be touched.
func bubble(t *testing.T, body func(t *testing.T, w *reconciletest.World)) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		for _, name := range []string{"ns", "other"} {
			reconciletest.Add(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{corev1.FinalizerKubernetes}}})
			reconciletest.Add(w, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: name}, Spec: corev1.PodSpec{NodeName: "n"}})
			reconciletest.Add(w, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: name}})
			reconciletest.Add(w, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: name}})
		}
		env := w.Env()
		env.Discovery, env.Metadata = w.Discovery(kinds()), w.Metadata(kinds())
		w.RunIn(env, New())
		if writes := w.Writes(); len(writes) > 0 {
			t.Fatalf("active namespaces were written to: %v", writes)
		}
		if err := w.Client.CoreV1().Namespaces().Delete(t.Context(), "ns", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		body(t, w)
	})
}

func condition(t *testing.T, w *reconciletest.World, kind corev1.NamespaceConditionType) string {
	t.Helper()
	ns, err := w.Client.CoreV1().Namespaces().Get(t.Context(), "ns", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range ns.Status.Conditions {
		if c.Type == kind {
			return string(c.Status) + " " + c.Message
		}
	}
	return ""
}

func TestPodsFirstThenEverything(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		if got := condition(t, w, corev1.NamespaceContentRemaining); got != "True Some resources are remaining: pods has 1 resource instances" {
			t.Errorf("condition: %s", got)
		}
		if _, err := w.Client.CoreV1().ConfigMaps("ns").Get(t.Context(), "c", metav1.GetOptions{}); err != nil {
			t.Errorf("content went before the pods: %v", err)
		}
		w.Writes()
		time.Sleep(10 * time.Second)
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("waiting for a pod wrote: %v", writes)
		}
		for _, p := range w.Pods("ns") {
			w.RemovePod(&p)
		}
		w.Settle()
		if _, err := w.Client.CoreV1().Namespaces().Get(t.Context(), "ns", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the namespace is still there: %v", err)
		}
		if _, err := w.Client.AppsV1().Deployments("ns").Get(t.Context(), "d", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("content is still there: %v", err)
		}
		for _, kind := range kinds()[:2] {
			list, err := w.Metadata(kinds()).Resource(kind.Resource).Namespace("other").List(t.Context(), metav1.ListOptions{})
			if err != nil || len(list.Items) != 1 {
				t.Errorf("another namespace lost its %s: %v", kind.Kind, err)
			}
		}
	})
}

func TestAFinalizerHoldsTheNamespace(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		c, _ := w.Client.CoreV1().ConfigMaps("ns").Get(t.Context(), "c", metav1.GetOptions{})
		c.Finalizers = []string{"test/hold"}
		if _, err := w.Client.CoreV1().ConfigMaps("ns").Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		for _, p := range w.Pods("ns") {
			w.RemovePod(&p)
		}
		w.Settle()
		if got := condition(t, w, corev1.NamespaceFinalizersRemaining); !strings.HasSuffix(got, "test/hold in 1 resource instances") {
			t.Errorf("condition: %s", got)
		}
		c, _ = w.Client.CoreV1().ConfigMaps("ns").Get(t.Context(), "c", metav1.GetOptions{})
		c.Finalizers = nil
		if _, err := w.Client.CoreV1().ConfigMaps("ns").Update(t.Context(), c, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		if _, err := w.Client.CoreV1().Namespaces().Get(t.Context(), "ns", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("the namespace is still there: %v", err)
		}
	})
}
