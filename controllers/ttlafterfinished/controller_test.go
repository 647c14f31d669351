package ttlafterfinished

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func newJob(name string, ttl *int32, end batchv1.JobConditionType, ago time.Duration) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}, Spec: batchv1.JobSpec{TTLSecondsAfterFinished: ttl}}
	if end != "" {
		job.Status.Conditions = []batchv1.JobCondition{{Type: end, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(time.Now().Add(-ago))}}
	}
	return job
}

func TestDeletesJobsWhoseTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		w.Run(New())
		for _, job := range []*batchv1.Job{
			newJob("complete", new(int32(60)), batchv1.JobComplete, 0),
			newJob("failed", new(int32(60)), batchv1.JobFailed, 0),
			newJob("at-once", new(int32(0)), batchv1.JobComplete, 0),
			newJob("long-ago", new(int32(60)), batchv1.JobComplete, time.Hour),
			newJob("no-limit", nil, batchv1.JobComplete, time.Hour),
			newJob("running", new(int32(0)), "", 0),
			newJob("other-clock", new(int32(60)), batchv1.JobComplete, -time.Hour),
		} {
			reconciletest.Add(w, job)
		}
		expect := func(after string, want map[string]bool) {
			t.Helper()
			for name, wanted := range want {
				job, err := w.Client.BatchV1().Jobs("ns").Get(t.Context(), name, metav1.GetOptions{})
				if there := !apierrors.IsNotFound(err) && job.DeletionTimestamp == nil; there != wanted {
					t.Errorf("%s: %s is there: %v", after, name, there)
				}
			}
		}
		synctest.Wait()
		expect("at once", map[string]bool{"complete": true, "failed": true, "at-once": false, "long-ago": false, "no-limit": true, "running": true, "other-clock": true})
		time.Sleep(time.Minute)
		synctest.Wait()
		expect("a minute", map[string]bool{"complete": false, "failed": false, "no-limit": true, "running": true, "other-clock": true})
		w.Writes()
		time.Sleep(50 * time.Minute)
		synctest.Wait()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("writes in a world at rest: %v", writes)
		}
	})
}

// A limit that was raised after the cache was read holds.
func TestAsksTheAPIBeforeItDeletes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		w.Run(New())
		reconciletest.Add(w, newJob("j", new(int32(60)), batchv1.JobComplete, 0))
		time.Sleep(30 * time.Second)
		job, err := w.Client.BatchV1().Jobs("ns").Get(t.Context(), "j", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		job.Spec.TTLSecondsAfterFinished = new(int32(600))
		if _, err := w.Client.BatchV1().Jobs("ns").Update(t.Context(), job, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if job, err = w.Client.BatchV1().Jobs("ns").Get(t.Context(), "j", metav1.GetOptions{}); err != nil || job.DeletionTimestamp != nil {
			t.Fatalf("deleted too early: %v", err)
		}
	})
}

// TestClockJumps: while the clock is a year behind no Job's time is over, and soon after it is right again each goes.
func TestClockJumps(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for _, by := range []time.Duration{-year, year} {
		synctest.Test(t, func(t *testing.T) {
			w := reconciletest.New(t)
			var offset atomic.Int64
			offset.Store(int64(by))
			w.Run(reconcile.Controller{Name: "ttl-after-finished-controller", Reads: New().Reads, Run: func(ctx context.Context, env *reconcile.Env) error {
				return runBy(ctx, env, func() time.Time { return time.Now().Add(time.Duration(offset.Load())) })
			}})
			reconciletest.Add(w, newJob("j", new(int32(60)), batchv1.JobComplete, 0))
			reconciletest.Add(w, newJob("running", new(int32(60)), "", 0))
			there := func(name string) bool {
				job, err := w.Client.BatchV1().Jobs("ns").Get(t.Context(), name, metav1.GetOptions{})
				return err == nil && job.DeletionTimestamp == nil
			}
			synctest.Wait()
			if there("j") != (by < 0) || !there("running") {
				t.Errorf("by %v: %v %v", by, there("j"), there("running"))
			}
			offset.Store(0)
			time.Sleep(waitMax + time.Second)
			synctest.Wait()
			if there("j") || !there("running") {
				t.Errorf("by %v and back: %v %v", by, there("j"), there("running"))
			}
			w.Writes()
			time.Sleep(24 * time.Hour)
			if writes := w.Writes(); len(writes) > 0 {
				t.Errorf("by %v: writes in a world at rest: %v", by, writes)
			}
		})
	}
}
