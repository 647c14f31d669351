package rootca

import (
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func TestPublishesAndRepairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		reconciletest.Add(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
		w.Run(New([]byte("PEM")))
		w.Settle()
		if diff := cmp.Diff([]string{"create configmaps ns/kube-root-ca.crt"}, w.Writes()); diff != "" {
			t.Error(diff)
		}
		m, err := w.Client.CoreV1().ConfigMaps("ns").Get(t.Context(), Name, metav1.GetOptions{})
		if err != nil || m.Data["ca.crt"] != "PEM" || !strings.HasPrefix(m.Annotations["kubernetes.io/description"], "Contains a CA bundle") {
			t.Fatalf("%v, %v, %v", m.Data, m.Annotations, err)
		}
		m.Data["ca.crt"] = "forged"
		if _, err := w.Client.CoreV1().ConfigMaps("ns").Update(t.Context(), m, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		m, err = w.Client.CoreV1().ConfigMaps("ns").Get(t.Context(), Name, metav1.GetOptions{})
		if err != nil || m.Data["ca.crt"] != "PEM" {
			t.Errorf("not repaired: %v, %v", m.Data, err)
		}
		w.Writes()
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
	})
}

func TestNoBundleWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		reconciletest.Add(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
		w.Run(New(nil))
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("written: %v", writes)
		}
	})
}
