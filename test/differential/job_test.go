package differential

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// jobWorld is a Job with its pods.
type jobWorld struct{ first *batchv1.Job }

func newJob(g *generator) workload {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: workloadName}}
	labels := map[string]string{"batch.kubernetes.io/controller-uid": "fixed", "controller-uid": "fixed", "job-name": workloadName, "batch.kubernetes.io/job-name": workloadName}
	j.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"batch.kubernetes.io/controller-uid": "fixed"}}
	j.Spec.Template = template(g)
	j.Spec.Template.Labels = labels
	j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	j.Spec.Parallelism = new(int32(g.IntN(5)))
	j.Spec.Completions = new(int32(1 + g.IntN(6)))
	j.Spec.BackoffLimit = new(int32(g.IntN(5)))
	j.Spec.Suspend = new(g.chance(6))
	mode, replace := batchv1.NonIndexedCompletion, batchv1.TerminatingOrFailed
	if g.chance(2) {
		mode = batchv1.IndexedCompletion
		indexed(g, j)
	} else if g.chance(4) {
		j.Spec.Completions = nil // a work queue
	}
	if g.chance(3) {
		j.Spec.PodFailurePolicy = failurePolicy(g, mode, j.Spec.BackoffLimitPerIndex != nil)
		replace = batchv1.Failed
	}
	if g.chance(4) {
		j.Spec.ActiveDeadlineSeconds = new(int64(69 + 10*g.IntN(100))) // it passes when no pod acts, nor has just acted
	}
	j.Spec.CompletionMode, j.Spec.PodReplacementPolicy = &mode, &replace
	return &jobWorld{j}
}

func indexed(g *generator, j *batchv1.Job) {
	if g.chance(2) {
		j.Spec.BackoffLimitPerIndex, j.Spec.BackoffLimit = new(int32(g.IntN(3))), new(int32(1<<31-1))
		if g.chance(2) {
			j.Spec.MaxFailedIndexes = new(int32(g.IntN(3)))
		}
	}
	if g.chance(3) {
		j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededCount: new(int32(1))}}}
	}
}

func failurePolicy(g *generator, mode batchv1.CompletionMode, perIndex bool) *batchv1.PodFailurePolicy {
	actions := []batchv1.PodFailurePolicyAction{batchv1.PodFailurePolicyActionFailJob, batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionCount}
	if mode == batchv1.IndexedCompletion && perIndex {
		actions = append(actions, batchv1.PodFailurePolicyActionFailIndex)
	}
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action:      actions[g.IntN(len(actions))],
		OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{int32(1 + g.IntN(2))}},
	}}}
}

func (l *jobWorld) create(w *world) {
	j := l.first.DeepCopy()
	j.Namespace = w.namespace
	if _, err := w.Client.BatchV1().Jobs(w.namespace).Create(context.Background(), j, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

func (l *jobWorld) change(f func(j *batchv1.Job)) func(w *world) {
	return func(w *world) {
		jobs := w.Client.BatchV1().Jobs(w.namespace)
		j, err := jobs.Get(context.Background(), workloadName, metav1.GetOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		f(j)
		if _, err := jobs.Update(context.Background(), j, metav1.UpdateOptions{}); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (l *jobWorld) edit(g *generator) (string, func(w *world)) {
	parallel, suspend, seed := int32(g.IntN(6)), g.chance(2), g.Uint64()
	switch g.IntN(7) {
	case 6:
		return "containers restart", func(w *world) { setRestarts(w, newGenerator(seed)) }
	case 0, 1:
		return fmt.Sprintf("suspend %v", suspend), l.change(func(j *batchv1.Job) { j.Spec.Suspend = &suspend })
	case 2, 3:
		if l.first.Spec.Completions != nil && *l.first.Spec.CompletionMode == batchv1.IndexedCompletion && l.first.Spec.SuccessPolicy == nil {
			return fmt.Sprintf("elastic %d", parallel+1), l.change(func(j *batchv1.Job) {
				j.Spec.Parallelism, j.Spec.Completions = new(parallel+1), new(parallel+1)
			})
		}
	}
	return fmt.Sprintf("parallelism %d", parallel), l.change(func(j *batchv1.Job) { j.Spec.Parallelism = &parallel })
}

// actTime: upstream looks at a Job's pods once a second. Pauses after failures, of tens of seconds, end neither with a step nor in the
// second before, as few pods act.
func (l *jobWorld) actTime() time.Duration { return 1100 * time.Millisecond }

func (l *jobWorld) ends() (end, succeed float64) { return 0.6, 0.6 }

var (
	// index is the completion index in the look of a pod.
	index = regexp.MustCompile(`job-completion-index=\d+`)
	// waiting are the pods without a node, in a description, and how many pods are active with them.
	waiting = regexp.MustCompile(`active=\d+|  \d+ pod .* placed=false Pending.*\n`)
	active  = regexp.MustCompile(`active=\d`)
	failed  = regexp.MustCompile(`failed=\d+`)
	started = regexp.MustCompile(`started=\w+`)
	decided = regexp.MustCompile(`condition (FailureTarget|SuccessCriteriaMet)=True`)
	ending  = regexp.MustCompile(`terminating=\d+`)
	// outcome is how pods of a Job ended, and those that ended well after they were deleted.
	outcome = regexp.MustCompile(`succeeded=\d+ failed=\d+ completed="[^"]*"|  \d+ pod .* Succeeded deleted .*\n`)
)

// excuse: which of several new pods go when there are too many is chance with upstream, as it creates them beside each
// other and removes the newest first. (One processor runs them always in the same order.) And upstream's pause counts from the
// end of the pod that it counted last, even if another one ended later (newBackoffRecord): a pod that was not Ready for long when
// it was deleted has an early end. Ours counts from the latest end. When a suspended Job is resumed whose end is decided, upstream writes
// so with the next change only. And a pod that it lets go when it replaces it, just before the worlds are compared, it tells a second
// later; a pod that was deleted, and so has failed, may end well within that second.
func (l *jobWorld) excuse(ours, upstream string) string {
	if alikeWithout(index, ours, upstream) {
		return "other indexes of pods that are alike were removed"
	}
	if alikeWithout(waiting, ours, upstream) && strings.Contains(ours, "Ready=False deleted") &&
		active.FindString(ours) < active.FindString(upstream) {
		return "upstream pauses from the pod that was counted last, not from the one that ended last"
	}
	if alikeWithout(failed, ours, upstream) && strings.Contains(ours, "Ready=False deleted") &&
		strings.Contains(ours, "BackoffLimitExceeded") {
		return "upstream, without that pause, made pods that were one failure too many"
	}
	if alikeWithout(started, ours, upstream) && decided.MatchString(ours) {
		return "upstream does not write the start of a resumed Job whose end is decided"
	}
	if alikeWithout(ending, ours, upstream) && ending.FindString(ours) < ending.FindString(upstream) {
		return "upstream tells a second later that a pod is gone"
	}
	if alikeWithout(outcome, ours, upstream) && strings.Contains(upstream, "Succeeded deleted") && !strings.Contains(ours, "Succeeded deleted") {
		return "upstream counts a second later that a pod was deleted, and it has ended well by then"
	}
	return ""
}

// alikeWithout tells whether two descriptions are the same but for something in them.
func alikeWithout(what *regexp.Regexp, ours, upstream string) bool {
	return what.ReplaceAllString(ours, "") == what.ReplaceAllString(upstream, "")
}

func (l *jobWorld) describe(w *world, out *strings.Builder) {
	j, err := w.Client.BatchV1().Jobs(w.namespace).Get(context.Background(), workloadName, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	s := j.Status
	fmt.Fprintf(out, "  job active=%d ready=%s terminating=%s succeeded=%d failed=%d completed=%q failedIndexes=%s uncounted=%v started=%v ended=%v\n",
		s.Active, number(s.Ready), number(s.Terminating), s.Succeeded, s.Failed, s.CompletedIndexes, text(s.FailedIndexes),
		s.UncountedTerminatedPods, s.StartTime != nil, s.CompletionTime != nil)
	for _, c := range s.Conditions {
		fmt.Fprintf(out, "  condition %s=%s %s %q\n", c.Type, c.Status, c.Reason, withoutNames(c.Message))
	}
	w.describePods(out, look)
}

func text(s *string) string {
	if s == nil {
		return "none"
	}
	return fmt.Sprintf("%q", *s)
}

// withoutNames takes the names of pods from a message: their ends are chance.
func withoutNames(message string) string {
	words := strings.Fields(message)
	for i, word := range words {
		if strings.Contains(word, "/"+workloadName+"-") {
			words[i] = "POD"
		}
	}
	return strings.Join(words, " ")
}
