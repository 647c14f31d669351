package serviceaccount

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/google/go-cmp/cmp"
	"github.com/setpoint-io/setpoint/controllers/controllertest"
)

func TestEveryActiveNamespaceHasTheAccount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := controllertest.New(t)
		controllertest.Add(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "old"}})
		dying := metav1.NewTime(time.Now())
		controllertest.Add(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "dying", DeletionTimestamp: &dying, Finalizers: []string{"test/keep"}}})
		w.Run(func(ctx context.Context) error { return Run(ctx, Config{Client: w.Client, Informers: w.Informers}) })
		controllertest.Add(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "new"}})
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
