package serviceaccount

import (
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func TestEveryActiveNamespaceHasTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		reconciletest.Add(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "old"}})
		dying := metav1.NewTime(time.Now())
		reconciletest.Add(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "dying", DeletionTimestamp: &dying, Finalizers: []string{"test/keep"}}})
		w.Run(New())
		reconciletest.Add(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}})
		w.Settle()
		want := []string{"create serviceaccounts old/default", "create serviceaccounts new/default"}
		if diff := cmp.Diff(want, w.Writes()); diff != "" {
			t.Error(diff)
		}
		if err := w.Client.CoreV1().ServiceAccounts("old").Delete(t.Context(), Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		want = []string{"delete serviceaccounts old/default", "create serviceaccounts old/default"}
		if diff := cmp.Diff(want, w.Writes()); diff != "" {
			t.Error(diff)
		}
	})
}
