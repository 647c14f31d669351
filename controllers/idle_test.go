package controllers

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// TestAnIdleClusterIsNotWrittenTo: a Deployment runs and nothing changes for ten minutes; no loop writes or fails.
func TestAnIdleClusterIsNotWrittenTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		env, cfg := config(t, w)
		env.Numbers = &numbers.Ledger{}
		w.Warm(all(cfg)...)
		w.Start()
		ctx, cancel := context.WithCancel(w.Context())
		done := make(chan error)
		go func() { done <- Run(ctx, env, cfg) }()
		labels := map[string]string{"app": "web"}
		reconciletest.Add(w, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "ns"}})
		reconciletest.Add(w, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns"}, Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}}}})
		w.Settle()
		if n := len(w.Pods("ns")); n != 3 {
			t.Errorf("%d pods, want 3", n)
		}
		if len(w.Writes()) == 0 {
			t.Error("nothing was written before, so this test sees nothing")
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an idle cluster was written to: %v", writes)
		}
		for _, loop := range env.Numbers.Reports(time.Now()) {
			if loop.Queue == "podcertificatecleaner" {
				continue // the fake clientset cannot list its kind
			}
			if len(loop.Failing) > 0 || loop.Depth > 0 {
				t.Errorf("%s: %d wait, these fail: %+v", loop.Queue, loop.Depth, loop.Failing)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
