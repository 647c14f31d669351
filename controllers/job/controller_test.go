package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// newJob is a Job with the defaults of the API.
func newJob(parallelism int32, change ...func(spec *batchv1.JobSpec)) *batchv1.Job {
	labels := map[string]string{batchv1.ControllerUidLabel: "the-job", batchv1.JobNameLabel: "j"}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "j", Namespace: "ns", UID: "the-job"},
		Spec: batchv1.JobSpec{
			Parallelism: &parallelism, Completions: new(parallelism), BackoffLimit: new(int32(6)), CompletionMode: new(batchv1.NonIndexedCompletion),
			PodReplacementPolicy: new(batchv1.TerminatingOrFailed),
			Selector:             &metav1.LabelSelector{MatchLabels: map[string]string{batchv1.ControllerUidLabel: "the-job"}},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
				RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c"}}}},
		},
	}
	for _, f := range change {
		f(&job.Spec)
	}
	return job
}

func completions(n int32) func(spec *batchv1.JobSpec) {
	return func(spec *batchv1.JobSpec) { spec.Completions = &n }
}

func withIndexes(spec *batchv1.JobSpec) { spec.CompletionMode = new(batchv1.IndexedCompletion) }

func backoffLimit(n int32) func(spec *batchv1.JobSpec) {
	return func(spec *batchv1.JobSpec) { spec.BackoffLimit = &n }
}

func perIndex(n int32) func(spec *batchv1.JobSpec) {
	return func(spec *batchv1.JobSpec) {
		spec.BackoffLimitPerIndex, spec.BackoffLimit = &n, new(int32(1<<31-1))
		withIndexes(spec)
	}
}

// world is a world with one Job in it.
type world struct {
	*reconciletest.World
	t *testing.T
}

func bubble(t *testing.T, job *batchv1.Job, body func(w world)) {
	synctest.Test(t, func(t *testing.T) {
		w := world{reconciletest.New(t), t}
		w.Numbers = &numbers.Ledger{}
		w.Run(New())
		if job != nil {
			reconciletest.Add(w.World, job)
		}
		w.Settle()
		body(w)
	})
}

func (w world) job() *batchv1.Job {
	w.t.Helper()
	job, err := w.Client.BatchV1().Jobs("ns").Get(w.t.Context(), "j", metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return job
}

// update changes the Job as a user would.
func (w world) update(change func(job *batchv1.Job)) {
	w.t.Helper()
	job := w.job()
	change(job)
	if _, err := w.Client.BatchV1().Jobs("ns").Update(w.t.Context(), job, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.Settle()
}

// running are the pods that have neither ended nor been asked to.
func (w world) running() []*corev1.Pod {
	w.t.Helper()
	var out []*corev1.Pod
	for _, pod := range w.Pods("ns") {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && pod.DeletionTimestamp == nil {
			out = append(out, &pod)
		}
	}
	return out
}

// end ends a pod with an exit code.
func (w world) end(pod *corev1.Pod, code int32) {
	w.t.Helper()
	w.Put(ended(pod, code))
	w.Settle()
}

func ended(pod *corev1.Pod, code int32) *corev1.Pod {
	pod = pod.DeepCopy()
	pod.Spec.NodeName = "node"
	pod.Status.Phase = corev1.PodSucceeded
	if code != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	pod.Status.Conditions = nil
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(time.Now())}}}}
	return pod
}

// letGo plays the node agent: pods that were asked to stop go.
func (w world) letGo() {
	w.t.Helper()
	for _, pod := range w.Pods("ns") {
		if pod.DeletionTimestamp != nil && len(pod.Finalizers) == 0 {
			w.RemovePod(&pod)
		}
	}
	w.Settle()
}

// index is the running pod of an index.
func (w world) index(index int) *corev1.Pod {
	w.t.Helper()
	for _, pod := range w.running() {
		if indexOf(pod) == index {
			return pod
		}
	}
	w.t.Fatalf("no running pod of index %d", index)
	return nil
}

// summary is a status in one line.
func summary(job *batchv1.Job) string {
	s := job.Status
	text := fmt.Sprintf("active=%d ready=%d terminating=%d succeeded=%d failed=%d", s.Active, ptr.Deref(s.Ready, -1), ptr.Deref(s.Terminating, -1), s.Succeeded, s.Failed)
	if s.CompletedIndexes != "" {
		text += " completed=" + s.CompletedIndexes
	}
	if s.FailedIndexes != nil {
		text += " lost=" + *s.FailedIndexes
	}
	for _, c := range s.Conditions {
		if c.Status == corev1.ConditionTrue {
			text += fmt.Sprintf(" %s:%s", c.Type, c.Reason)
		}
	}
	return text
}

func (w world) expect(want string) {
	w.t.Helper()
	if got := summary(w.job()); got != want {
		w.t.Errorf("status\n got %s\nwant %s", got, want)
	}
}

// expectRest fails when a world at rest is written to.
func (w world) expectRest() {
	w.t.Helper()
	w.Writes()
	time.Sleep(time.Minute)
	w.Settle()
	if writes := w.Writes(); len(writes) > 0 {
		w.t.Errorf("a world at rest was written to: %v", writes)
	}
}

func TestCompletes(t *testing.T) {
	bubble(t, newJob(2, completions(3)), func(w world) {
		w.expect("active=2 ready=0 terminating=0 succeeded=0 failed=0")
		w.RunPods(true)
		w.Settle()
		w.expect("active=2 ready=2 terminating=0 succeeded=0 failed=0")
		w.expectRest()
		for _, pod := range w.running() {
			w.end(pod, 0)
		}
		w.expect("active=1 ready=0 terminating=0 succeeded=2 failed=0")
		w.end(w.running()[0], 0)
		w.expect("active=0 ready=0 terminating=0 succeeded=3 failed=0 SuccessCriteriaMet:CompletionsReached Complete:CompletionsReached")
		job := w.job()
		if job.Status.CompletionTime == nil || job.Status.StartTime == nil {
			t.Errorf("times: %v to %v", job.Status.StartTime, job.Status.CompletionTime)
		}
		for _, pod := range w.Pods("ns") {
			if tracked(&pod) {
				t.Errorf("pod %s keeps its finalizer", pod.Name)
			}
		}
		events := w.Events.List()
		if n := len(slices.DeleteFunc(slices.Clone(events), func(e string) bool { return !strings.HasPrefix(e, "Normal SuccessfulCreate Created pod: j-") })); n != 3 || events[len(events)-1] != "Normal Completed Job completed" {
			t.Errorf("events: %q", events)
		}
		w.expectRest()
	})
}

// TestNumbers are upstream's metrics of Jobs.
func TestNumbers(t *testing.T) {
	bubble(t, newJob(2, withIndexes, perIndex(0)), func(w world) {
		w.RunPods(true)
		w.Settle()
		w.end(w.index(0), 0)
		w.end(w.index(1), 1)
		w.expect("active=0 ready=0 terminating=0 succeeded=1 failed=1 completed=0 lost=1 FailureTarget:FailedIndexes Failed:FailedIndexes")
		s := w.Numbers.Series()
		for name, c := range map[string]struct {
			is   prometheus.Counter
			want float64
		}{
			"failed Jobs":       {s.JobsFinished.WithLabelValues("Indexed", "failed", "FailedIndexes"), 1},
			"Jobs in all":       {s.JobsFinished.WithLabelValues("Indexed", "succeeded", "CompletionsReached"), 0},
			"pods that did it":  {s.JobPodsFinished.WithLabelValues("Indexed", "succeeded"), 1},
			"pods that failed":  {s.JobPodsFinished.WithLabelValues("Indexed", "failed"), 1},
			"creating passes":   {s.Syncs.WithLabelValues("Indexed", "success", "pods_created"), 1},
			"passes with error": {s.Syncs.WithLabelValues("Indexed", "error", "tracking"), 0},
		} {
			if got := testutil.ToFloat64(c.is); got != c.want {
				t.Errorf("%s: %v, want %v", name, got, c.want)
			}
		}
		if n := testutil.CollectAndCount(s.SyncTime); n < 2 {
			t.Errorf("%d series of durations", n)
		}
	})
}

func TestWorkQueueEndsWhenOneSucceededAndAllEnded(t *testing.T) {
	bubble(t, newJob(3, func(spec *batchv1.JobSpec) { spec.Completions = nil }), func(w world) {
		pods := w.running()
		w.end(pods[0], 0)
		w.expect("active=2 ready=0 terminating=0 succeeded=1 failed=0")
		w.end(pods[1], 1)
		w.end(pods[2], 0)
		w.expect("active=0 ready=0 terminating=0 succeeded=2 failed=1 SuccessCriteriaMet:CompletionsReached Complete:CompletionsReached")
	})
}

func TestPausesGrowAndTheLimitEndsTheJob(t *testing.T) {
	bubble(t, newJob(1, backoffLimit(2)), func(w world) {
		for failed, pause := range []time.Duration{10 * time.Second, 20 * time.Second} {
			w.end(w.running()[0], 1)
			time.Sleep(pause - time.Second)
			if n := len(w.running()); n != 0 {
				t.Fatalf("%d pods before the pause after failure %d is over", n, failed+1)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if n := len(w.running()); n != 1 {
				t.Fatalf("%d pods after the pause after failure %d", n, failed+1)
			}
		}
		w.Events.List()
		w.end(w.running()[0], 1)
		w.expect("active=0 ready=0 terminating=0 succeeded=0 failed=3 FailureTarget:BackoffLimitExceeded Failed:BackoffLimitExceeded")
		if diff := cmp.Diff([]string{"Warning BackoffLimitExceeded Job has reached the specified backoff limit"}, w.Events.List()); diff != "" {
			t.Error(diff)
		}
		w.expectRest()
	})
}

func TestDeadlineStopsActivePods(t *testing.T) {
	bubble(t, newJob(2, func(spec *batchv1.JobSpec) { spec.ActiveDeadlineSeconds = new(int64(30)) }), func(w world) {
		w.RunPods(true)
		time.Sleep(30 * time.Second)
		w.Settle()
		w.expect("active=0 ready=0 terminating=2 succeeded=0 failed=2 FailureTarget:DeadlineExceeded")
		w.letGo()
		w.expect("active=0 ready=0 terminating=0 succeeded=0 failed=2 FailureTarget:DeadlineExceeded Failed:DeadlineExceeded")
	})
}

func TestSuspendAndResume(t *testing.T) {
	bubble(t, newJob(2), func(w world) {
		w.RunPods(true)
		w.Settle()
		started := w.job().Status.StartTime
		time.Sleep(time.Minute)
		w.update(func(job *batchv1.Job) { job.Spec.Suspend = new(true) })
		w.letGo()
		w.expect("active=0 ready=0 terminating=0 succeeded=0 failed=0 Suspended:JobSuspended")
		if at := w.job().Status.StartTime; at != nil || len(w.Pods("ns")) > 0 {
			t.Errorf("started %v with %d pods while suspended", at, len(w.Pods("ns")))
		}
		w.expectRest()
		w.update(func(job *batchv1.Job) { job.Spec.Suspend = new(false) })
		w.expect("active=2 ready=0 terminating=0 succeeded=0 failed=0")
		if at := w.job().Status.StartTime; at == nil || !at.After(started.Time) {
			t.Errorf("started %v, want a new time after %v", at, started)
		}
		events := slices.DeleteFunc(w.Events.List(), func(e string) bool { return strings.Contains(e, "pod: ") })
		if diff := cmp.Diff([]string{"Normal Suspended Job suspended", "Normal Resumed Job resumed"}, events); diff != "" {
			t.Error(diff)
		}
	})
}

func TestIndexes(t *testing.T) {
	bubble(t, newJob(2, completions(4), withIndexes), func(w world) {
		pod := w.index(1)
		if pod.Labels[batchv1.JobCompletionIndexAnnotation] != "1" || pod.Spec.Hostname != "j-1" || !strings.HasPrefix(pod.Name, "j-1-") ||
			pod.Spec.Containers[0].Env[0].ValueFrom.FieldRef.FieldPath != "metadata.labels['batch.kubernetes.io/job-completion-index']" {
			t.Errorf("pod %s: %v %q %v", pod.Name, pod.Labels, pod.Spec.Hostname, pod.Spec.Containers[0].Env)
		}
		w.end(pod, 0)
		w.expect("active=2 ready=0 terminating=0 succeeded=1 failed=0 completed=1")
		w.end(w.index(2), 0)
		w.end(w.index(3), 0)
		w.end(w.index(0), 1)
		w.expect("active=0 ready=0 terminating=0 succeeded=3 failed=1 completed=1-3")
		time.Sleep(10 * time.Second)
		w.end(w.index(0), 0)
		w.expect("active=0 ready=0 terminating=0 succeeded=4 failed=1 completed=0-3 SuccessCriteriaMet:CompletionsReached Complete:CompletionsReached")
	})
}

func TestLimitPerIndex(t *testing.T) {
	bubble(t, newJob(2, completions(2), perIndex(1)), func(w world) {
		w.expect("active=2 ready=0 terminating=0 succeeded=0 failed=0 lost=")
		first := w.index(0)
		w.end(first, 1)
		w.expect("active=1 ready=0 terminating=0 succeeded=0 failed=0 lost=")
		time.Sleep(10 * time.Second)
		w.Settle()
		w.expect("active=2 ready=0 terminating=0 succeeded=0 failed=1 lost=") // its successor has taken over
		again := w.index(0)
		if n := again.Annotations[batchv1.JobIndexFailureCountAnnotation]; n != "1" {
			t.Errorf("the second pod of the index knows of %s failures", n)
		}
		w.end(again, 1)
		w.expect("active=1 ready=0 terminating=0 succeeded=0 failed=2 lost=0")
		w.end(w.index(1), 0)
		w.expect("active=0 ready=0 terminating=0 succeeded=1 failed=2 completed=1 lost=0 FailureTarget:FailedIndexes Failed:FailedIndexes")
	})
}

func TestMaxFailedIndexes(t *testing.T) {
	bubble(t, newJob(3, completions(3), perIndex(0), func(spec *batchv1.JobSpec) { spec.MaxFailedIndexes = new(int32(0)) }), func(w world) {
		w.end(w.index(2), 1)
		w.letGo()
		w.expect("active=0 ready=0 terminating=0 succeeded=0 failed=3 lost=2 FailureTarget:MaxFailedIndexesExceeded Failed:MaxFailedIndexesExceeded")
	})
}

func exitRule(action batchv1.PodFailurePolicyAction, code int32) batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
		Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{code}}}
}

func TestPodFailurePolicy(t *testing.T) {
	policy := func(spec *batchv1.JobSpec) {
		spec.PodReplacementPolicy = new(batchv1.Failed)
		spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{
			exitRule(batchv1.PodFailurePolicyActionFailJob, 42), exitRule(batchv1.PodFailurePolicyActionIgnore, 43),
			exitRule(batchv1.PodFailurePolicyActionCount, 44), exitRule(batchv1.PodFailurePolicyActionFailIndex, 45),
		}}
	}
	bubble(t, newJob(2, completions(2), perIndex(2), policy), func(w world) {
		w.end(w.index(0), 43)
		time.Sleep(10 * time.Second)
		w.Settle()
		w.expect("active=2 ready=0 terminating=0 succeeded=0 failed=0 lost=")
		if pod := w.index(0); ignoredFailures(pod) != 1 || countedFailures(pod) != 0 {
			t.Errorf("annotations %v", pod.Annotations)
		}
		w.end(w.index(1), 45)
		w.expect("active=1 ready=0 terminating=0 succeeded=0 failed=1 lost=1")
		pod := w.index(0)
		w.end(pod, 42)
		w.expect("active=0 ready=0 terminating=0 succeeded=0 failed=2 lost=1 FailureTarget:PodFailurePolicy Failed:PodFailurePolicy")
		want := fmt.Sprintf("Container c for pod ns/%s failed with exit code 42 matching FailJob rule at index 0", pod.Name)
		if got := w.job().Status.Conditions[1].Message; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestSuccessPolicyStopsTheRest(t *testing.T) {
	policy := func(spec *batchv1.JobSpec) {
		spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: new("1")}}}
	}
	bubble(t, newJob(3, withIndexes, policy), func(w world) {
		w.RunPods(true)
		w.end(w.index(0), 0)
		w.expect("active=2 ready=2 terminating=0 succeeded=1 failed=0 completed=0")
		w.end(w.index(1), 0)
		w.expect("active=0 ready=0 terminating=1 succeeded=2 failed=0 completed=0,1 SuccessCriteriaMet:SuccessPolicy")
		w.letGo()
		w.expect("active=0 ready=0 terminating=0 succeeded=2 failed=0 completed=0,1 SuccessCriteriaMet:SuccessPolicy Complete:SuccessPolicy")
	})
}

// A pod that was asked to stop is replaced at once, or when it has ended, as the Job says.
func TestReplacement(t *testing.T) {
	for policy, want := range map[batchv1.PodReplacementPolicy][2]string{
		batchv1.TerminatingOrFailed: {"active=0 ready=0 terminating=1 succeeded=0 failed=1", "active=1 ready=0 terminating=1 succeeded=0 failed=1"},
		batchv1.Failed:              {"active=0 ready=0 terminating=1 succeeded=0 failed=0", "active=0 ready=0 terminating=1 succeeded=0 failed=0"},
	} {
		t.Run(string(policy), func(t *testing.T) {
			bubble(t, newJob(1, func(spec *batchv1.JobSpec) { spec.PodReplacementPolicy = &policy }), func(w world) {
				w.RunPods(true)
				w.Settle()
				pod := w.running()[0]
				if err := w.Client.CoreV1().Pods("ns").Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				w.Settle()
				w.expect(want[0])
				time.Sleep(10 * time.Second)
				w.Settle()
				w.expect(want[1])
			})
		})
	}
}

func TestScalesDownWithoutCounting(t *testing.T) {
	bubble(t, newJob(3, completions(5)), func(w world) {
		w.update(func(job *batchv1.Job) { job.Spec.Parallelism = new(int32(1)) })
		w.expect("active=1 ready=0 terminating=0 succeeded=0 failed=0")
		if n := len(w.Pods("ns")); n != 1 {
			t.Errorf("%d pods, want 1", n)
		}
	})
}

func TestLeavesAloneWhatOthersManage(t *testing.T) {
	bubble(t, newJob(3, func(spec *batchv1.JobSpec) { spec.ManagedBy = new("example.com/other") }), func(w world) {
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("wrote %v", writes)
		}
	})
}

func TestAdoptsAndReleases(t *testing.T) {
	orphan := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "orphan", Namespace: "ns", Labels: map[string]string{batchv1.ControllerUidLabel: "the-job"}}}
	bubble(t, nil, func(w world) {
		reconciletest.Add(w.World, orphan)
		w.Settle()
		job := reconciletest.Add(w.World, newJob(1))
		w.Settle()
		pods := w.Pods("ns")
		if len(pods) != 1 || !metav1.IsControlledBy(&pods[0], job) || !tracked(&pods[0]) {
			t.Fatalf("not adopted: %+v", pods)
		}
		pods[0].Labels = nil
		w.Put(&pods[0])
		w.Settle()
		released, err := w.Client.CoreV1().Pods("ns").Get(t.Context(), "orphan", metav1.GetOptions{})
		if err != nil || len(released.OwnerReferences) > 0 || tracked(released) || len(w.Pods("ns")) != 2 {
			t.Errorf("not released: %+v %v", released, err)
		}
	})
}

// Pods whose Job is gone can be deleted.
func TestFreesOrphans(t *testing.T) {
	bubble(t, newJob(2), func(w world) {
		if err := w.Client.BatchV1().Jobs("ns").Delete(t.Context(), "j", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		for _, pod := range w.Pods("ns") {
			if tracked(&pod) {
				t.Errorf("pod %s keeps the finalizer", pod.Name)
			}
		}
	})
}
