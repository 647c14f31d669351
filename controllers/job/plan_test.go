package job

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var now = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

func TestIndexSets(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "0": "0", "1,2": "1,2", "1,2,3": "1-3", "5,1-3": "1-3,5", "1-3,2-6": "1-6", "7-99": "7-9", "x,4,-1,3-y": "4", "3-1": "",
	} {
		if got := parseIndexes(text, 10).String(); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	a, b := parseIndexes("0-3,7", 10), parseIndexes("2-5,7,9", 10)
	if got := union(a, b).String(); got != "0-5,7,9" {
		t.Errorf("union %s", got)
	}
	if n := a.common(b); n != 3 {
		t.Errorf("%d in common, want 3", n)
	}
	if diff := cmp.Diff([]int{4, 5, 6, 8, 9}, slices.Collect(a.missing(10))); diff != "" {
		t.Error(diff)
	}
	for index, want := range map[int]bool{0: true, 3: true, 4: false, 7: true, 8: false} {
		if a.has(index) != want {
			t.Errorf("has %d: %t", index, !want)
		}
	}
}

func TestStreak(t *testing.T) {
	endedAt := func(seconds ...int) (pods []*corev1.Pod) {
		for _, s := range seconds {
			pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(time.Duration(s) * time.Second))}})
		}
		return pods
	}
	for name, c := range map[string]struct {
		before            streak
		succeeded, failed []*corev1.Pod
		failures          int
		wait              time.Duration
	}{
		"nothing":               {},
		"one":                   {failed: endedAt(0), failures: 1, wait: 10 * time.Second},
		"three":                 {failed: endedAt(-2, 0, -1), failures: 3, wait: 40 * time.Second},
		"goes on":               {before: streak{2, now.Add(-time.Hour)}, failed: endedAt(0), failures: 3, wait: 40 * time.Second},
		"success ends it":       {before: streak{2, now}, succeeded: endedAt(0)},
		"failure after success": {before: streak{2, now}, succeeded: endedAt(-2), failed: endedAt(-3, 0), failures: 1, wait: 10 * time.Second},
		"bounded":               {before: streak{50, now}, failed: endedAt(0), failures: 51, wait: 10 * time.Minute},
		"over":                  {failed: endedAt(-11), failures: 1},
	} {
		got := c.before.with(c.succeeded, c.failed)
		if wait := got.wait(now); got.failures != c.failures || wait != c.wait {
			t.Errorf("%s: %d failures, wait %s", name, got.failures, wait)
		}
	}
}

func TestSuccessPolicy(t *testing.T) {
	for name, c := range map[string]struct {
		rule      batchv1.SuccessPolicyRule
		succeeded string
		want      bool
	}{
		"all listed":      {batchv1.SuccessPolicyRule{SucceededIndexes: new("1-2")}, "1-2", true},
		"one is missing":  {batchv1.SuccessPolicyRule{SucceededIndexes: new("1-2")}, "0,1", false},
		"enough listed":   {batchv1.SuccessPolicyRule{SucceededIndexes: new("1-3"), SucceededCount: new(int32(2))}, "1,3", true},
		"enough, others":  {batchv1.SuccessPolicyRule{SucceededIndexes: new("1-3"), SucceededCount: new(int32(2))}, "0,1", false},
		"enough of any":   {batchv1.SuccessPolicyRule{SucceededCount: new(int32(2))}, "0,4", true},
		"too few":         {batchv1.SuccessPolicyRule{SucceededCount: new(int32(2))}, "4", false},
		"nothing can be":  {batchv1.SuccessPolicyRule{SucceededIndexes: new("x")}, "0", false},
		"nothing has yet": {batchv1.SuccessPolicyRule{SucceededCount: new(int32(0))}, "", false},
	} {
		job := newJob(5, withIndexes, func(spec *batchv1.JobSpec) {
			spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{c.rule}}
		})
		if _, got := meetsSuccessPolicy(job, parseIndexes(c.succeeded, 5)); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// TestAccountStates: each state in which a crash can leave a pod that ended leads to one count.
func TestAccountStates(t *testing.T) {
	listed := func(uids ...types.UID) *batchv1.UncountedTerminatedPods {
		return &batchv1.UncountedTerminatedPods{Succeeded: uids}
	}
	for name, c := range map[string]struct {
		tracked bool
		before  batchv1.JobStatus
		want    batchv1.JobStatus
		release bool
	}{
		"ended":    {true, batchv1.JobStatus{}, batchv1.JobStatus{UncountedTerminatedPods: listed("p")}, true},
		"listed":   {true, batchv1.JobStatus{UncountedTerminatedPods: listed("p")}, batchv1.JobStatus{UncountedTerminatedPods: listed("p")}, true},
		"released": {false, batchv1.JobStatus{UncountedTerminatedPods: listed("p")}, batchv1.JobStatus{Succeeded: 1, UncountedTerminatedPods: listed()}, false},
		"counted":  {false, batchv1.JobStatus{Succeeded: 1}, batchv1.JobStatus{Succeeded: 1, UncountedTerminatedPods: listed()}, false},
	} {
		pod := ended(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "p"}}, 0)
		if c.tracked {
			pod.Finalizers = []string{batchv1.JobTrackingFinalizer}
		}
		job := newJob(2)
		job.Status = c.before
		status, release := account(look(job, []*corev1.Pod{pod}), outcome{}, now)
		c.want.Ready, c.want.Terminating = new(int32), new(int32)
		if diff := cmp.Diff(c.want, status); diff != "" || len(release) == 1 != c.release {
			t.Errorf("%s: releases %d\n%s", name, len(release), diff)
		}
	}
}

// TestUncountedIsBounded: lists that are longer than a status may hold are counted in parts.
func TestUncountedIsBounded(t *testing.T) {
	var pods []*corev1.Pod
	for i := range uncountedMax + 10 {
		pod := ended(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(rune('a' + i)), Finalizers: []string{batchv1.JobTrackingFinalizer}}}, 1)
		pods = append(pods, pod)
	}
	status, release := account(look(newJob(1), pods), outcome{}, now)
	if len(status.UncountedTerminatedPods.Failed) != uncountedMax || len(release) != uncountedMax {
		t.Errorf("%d listed, %d released", len(status.UncountedTerminatedPods.Failed), len(release))
	}
}
