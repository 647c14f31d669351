package job

import (
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// Scenarios of upstream's test/integration/job (docs/internals/upstream-scenarios.md).

// The pauses of an index grow with its own failures; those of another are its own.
func TestPausesGrowForEachIndex(t *testing.T) {
	bubble(t, newJob(2, completions(2), perIndex(3)), func(w world) {
		fail := func(index int, pause time.Duration) {
			t.Helper()
			w.end(w.index(index), 1)
			time.Sleep(pause - time.Second)
			if n := len(w.running()); n != 1 {
				t.Errorf("index %d: %d pods run before its pause of %v is over", index, n, pause)
			}
			time.Sleep(time.Second)
			w.Settle()
			if n := len(w.running()); n != 2 {
				t.Errorf("index %d: %d pods run after its pause of %v", index, n, pause)
			}
		}
		fail(0, 10*time.Second)
		fail(0, 20*time.Second)
		fail(1, 10*time.Second)
		fail(0, 40*time.Second)
		w.end(w.index(1), 0)
		w.end(w.index(0), 0)
		if job := w.job(); job.Status.CompletedIndexes != "0,1" || job.Status.Failed != 4 {
			t.Errorf("status %s", summary(job))
		}
	})
}

// Many pods fail at once: all are counted, and none keeps its finalizer.
func TestManyFailAtOnce(t *testing.T) {
	const pods = 50
	bubble(t, newJob(pods, backoffLimit(0)), func(w world) {
		failed := w.running()
		for i, pod := range failed {
			failed[i] = ended(pod, 1)
		}
		w.Put(failed...)
		w.Settle()
		job := w.job()
		if job.Status.Failed != pods || len(job.Status.Conditions) == 0 || job.Status.Conditions[len(job.Status.Conditions)-1].Type != batchv1.JobFailed {
			t.Errorf("status %s", summary(job))
		}
		for _, pod := range w.Pods("ns") {
			if tracked(&pod) {
				t.Fatalf("pod %s keeps its finalizer", pod.Name)
			}
		}
	})
}

// starts plays a world that is there before the loop.
func starts(t *testing.T, before func(w *reconciletest.World), after func(w world)) {
	synctest.Test(t, func(t *testing.T) {
		w := world{reconciletest.New(t), t}
		before(w.World)
		w.Run(New())
		w.Settle()
		after(w)
	})
}

// A Job was deleted while no loop ran: its pods are freed.
func TestOrphansOfBeforeAreFreed(t *testing.T) {
	starts(t, func(w *reconciletest.World) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "left", Namespace: "ns", Finalizers: []string{batchv1.JobTrackingFinalizer},
			Labels:          map[string]string{batchv1.JobNameLabel: "gone", batchv1.ControllerUidLabel: "gone"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "gone", UID: "gone", Controller: new(true)}}}}
		reconciletest.Add(w, pod)
	}, func(w world) {
		if pods := w.Pods("ns"); len(pods) != 1 || tracked(&pods[0]) {
			t.Errorf("pods %+v", pods)
		}
	})
}

// A Job was suspended while no loop ran: its pods stop, it starts none, and it says so.
func TestSuspendedBetweenTerms(t *testing.T) {
	starts(t, func(w *reconciletest.World) {
		job := newJob(1, func(spec *batchv1.JobSpec) { spec.Suspend = new(true) })
		job.Status.StartTime, job.Status.Active = new(metav1.Now()), 1
		reconciletest.Add(w, job)
		pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: job.Spec.Template.Spec}
		pod.Name, pod.Namespace, pod.Finalizers = "j-x", "ns", []string{batchv1.JobTrackingFinalizer}
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
		reconciletest.Add(w, pod)
	}, func(w world) {
		w.letGo()
		w.expect("active=0 ready=0 terminating=0 succeeded=0 failed=0 Suspended:JobSuspended")
		if n := len(w.Pods("ns")); n != 0 {
			t.Errorf("%d pods", n)
		}
	})
}
