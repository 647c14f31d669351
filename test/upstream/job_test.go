package upstream

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
)

var jobs = map[string]func(*play){
	"job-changes-its-parallelism":             changingParallelism,
	"elastic-job-grows":                       elastic(step{completions: 4, succeed: []int{0, 1, 2, 3}, completed: "0-3", ended: true}),
	"elastic-job-shrinks":                     elastic(step{succeed: []int{1}, fail: []int{2}, completed: "1"}, step{completions: 1, succeed: []int{0}, completed: "0", ended: true}),
	"elastic-job-shrinks-to-nothing":          elastic(step{completions: -1, ended: true}),
	"elastic-job-shrinks-and-grows":           elastic(step{succeed: []int{2}, completed: "2"}, step{completions: 2}, step{completions: 3, succeed: []int{0, 1, 2}, completed: "0-2", ended: true}),
	"deleted-job-orphans-its-pods":            deletedJob(metav1.DeletePropagationOrphan),
	"deleted-job-in-the-background":           deletedJob(metav1.DeletePropagationBackground),
	"deleted-job-in-the-foreground":           deletedJob(metav1.DeletePropagationForeground),
	"job-of-the-same-name-starts-at-once":     recreatedJob,
	"job-of-the-same-name-managed-by-another": recreatedByAnother,
	"pods-of-a-job-managed-by-another":        reservedFinalizer,
	"suspended-job-changes-where-it-runs":     suspendedDirectives,
	"suspended-job-changes-its-resources":     suspendedResources,
	"suspended-job-waits-for-its-pods-to-go":  suspendedWaits,
	"suspended-job-of-no-pods":                suspendedEmpty,
}

func (p *play) makeJob(change func(*batchv1.Job)) *batchv1.Job {
	p.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "work"}, Spec: batchv1.JobSpec{Template: template()}}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	change(job)
	job, err := p.client.BatchV1().Jobs(p.namespace).Create(p.Context(), job, metav1.CreateOptions{})
	p.must(err)
	return job
}

// tryJob changes a Job, again if somebody else was faster.
func (p *play) tryJob(change func(*batchv1.Job)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		job, err := p.client.BatchV1().Jobs(p.namespace).Get(p.Context(), "work", metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(job)
		_, err = p.client.BatchV1().Jobs(p.namespace).Update(p.Context(), job, metav1.UpdateOptions{})
		return err
	})
}

func (p *play) changeJob(change func(*batchv1.Job)) {
	p.Helper()
	p.must(p.tryJob(change))
}

func (p *play) seeJob(what string, wanted func(*batchv1.Job) bool) *batchv1.Job {
	p.Helper()
	return seen(p, what, func(ctx context.Context) (*batchv1.Job, error) {
		return p.client.BatchV1().Jobs(p.namespace).Get(ctx, "work", metav1.GetOptions{})
	}, wanted)
}

func (p *play) seeActive(n int32) {
	p.Helper()
	p.seeJob(fmt.Sprintf("%d active", n), func(job *batchv1.Job) bool { return job.Status.Active == n })
}

func is(job *batchv1.Job, condition batchv1.JobConditionType) bool {
	return slices.ContainsFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == condition && c.Status == corev1.ConditionTrue })
}

// active are the pods that neither ended nor go.
func (p *play) active(ctx context.Context) []corev1.Pod {
	return slices.DeleteFunc(p.pods(ctx), func(pod corev1.Pod) bool {
		return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	})
}

func changingParallelism(p *play) {
	p.makeJob(func(job *batchv1.Job) {
		job.Spec.BackoffLimit, job.Spec.Parallelism = ptr.To[int32](2), ptr.To[int32](5)
	})
	for _, n := range []int32{5, 2, 4, 0, 1} {
		p.changeJob(func(job *batchv1.Job) { job.Spec.Parallelism = &n })
		p.seeActive(n)
	}
	if job := p.seeJob("one", func(*batchv1.Job) bool { return true }); job.Status.Failed != 0 {
		p.Errorf("%d failed because it shrank", job.Status.Failed)
	}
}

// step of an elastic Job: a new size (-1: none, 0: as before), and which indexes end then.
type step struct {
	completions   int32
	succeed, fail []int
	completed     string
	ended         bool
}

func elastic(steps ...step) func(*play) {
	return func(p *play) {
		p.makeJob(func(job *batchv1.Job) {
			job.Spec.Completions, job.Spec.Parallelism, job.Spec.CompletionMode = ptr.To[int32](3), ptr.To[int32](3), ptr.To(batchv1.IndexedCompletion)
		})
		p.seeActive(3)
		for _, s := range steps {
			if s.completions != 0 {
				n := max(s.completions, 0)
				p.changeJob(func(job *batchv1.Job) { job.Spec.Completions, job.Spec.Parallelism = &n, &n })
			}
			for _, index := range s.succeed {
				p.endIndex(index, 0)
			}
			for _, index := range s.fail {
				p.endIndex(index, 1)
			}
			p.seeJob(fmt.Sprintf("%+v", s), func(job *batchv1.Job) bool {
				return job.Status.CompletedIndexes == s.completed && is(job, batchv1.JobComplete) == s.ended
			})
		}
	}
}

func (p *play) endIndex(index int, code int32) {
	p.Helper()
	var pod corev1.Pod
	p.see(fmt.Sprintf("a pod of index %d", index), func(ctx context.Context) (string, bool) {
		all := p.active(ctx)
		at := slices.IndexFunc(all, func(pod corev1.Pod) bool {
			return pod.Annotations[batchv1.JobCompletionIndexAnnotation] == fmt.Sprint(index)
		})
		if at >= 0 {
			pod = all[at]
		}
		return fmt.Sprintf("%d pods", len(all)), at >= 0
	})
	p.end(&pod, code)
}

// deletedJob leaves no pod that the Job's finalizer holds.
func deletedJob(policy metav1.DeletionPropagation) func(*play) {
	return func(p *play) {
		p.makeJob(func(job *batchv1.Job) { job.Spec.Parallelism = ptr.To[int32](2) })
		p.seeActive(2)
		p.must(p.client.BatchV1().Jobs(p.namespace).Delete(p.Context(), "work", metav1.DeleteOptions{PropagationPolicy: &policy}))
		left := map[bool]int{true: 2}[policy == metav1.DeletePropagationOrphan]
		p.see("no finalizer of the Job", func(ctx context.Context) (string, bool) {
			pods := p.pods(ctx)
			tracked := slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) })
			return fmt.Sprint(len(pods), tracked), len(pods) == left && !tracked
		})
	}
}

// failedOnce is a Job that pauses after a failure.
func failedOnce(p *play) {
	p.makeJob(func(*batchv1.Job) {})
	p.seeActive(1)
	p.end(&p.active(p.Context())[0], 1)
	p.seeJob("a failure", func(job *batchv1.Job) bool { return job.Status.Failed == 1 })
	background := metav1.DeletePropagationBackground
	p.must(p.client.BatchV1().Jobs(p.namespace).Delete(p.Context(), "work", metav1.DeleteOptions{PropagationPolicy: &background}))
}

func recreatedJob(p *play) {
	failedOnce(p)
	again := p.makeJob(func(*batchv1.Job) {})
	p.seeActive(1)
	pods := p.active(p.Context())
	if len(pods) != 1 || !metav1.IsControlledBy(&pods[0], again) || pods[0].CreationTimestamp.Sub(again.CreationTimestamp.Time).Seconds() >= 10 {
		p.Errorf("%+v: the pause of the Job before is not this Job's", pods)
	}
}

func recreatedByAnother(p *play) {
	failedOnce(p)
	p.makeJob(func(job *batchv1.Job) { job.Spec.ManagedBy = ptr.To("example.com/other") })
	// Another Job in the same namespace has been looked at since.
	p.makeJob(func(job *batchv1.Job) { job.Name = "witness" })
	p.see("the other's pod", func(ctx context.Context) (string, bool) {
		n := len(p.active(ctx))
		return fmt.Sprint(n), n == 1
	})
	p.seeJob("not looked at", func(job *batchv1.Job) bool { return len(job.Status.Conditions) == 0 && job.Status.StartTime == nil })
	if pods := p.active(p.Context()); len(pods) != 1 || pods[0].Labels[batchv1.JobNameLabel] != "witness" {
		p.Errorf("%+v", pods)
	}
}

// reservedFinalizer: whose Job another manages keeps the finalizer, though it is ours.
func reservedFinalizer(p *play) {
	job := p.makeJob(func(job *batchv1.Job) { job.Spec.ManagedBy = ptr.To("example.com/other") })
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: job.Spec.Template.Spec}
	pod.Name, pod.Finalizers = "theirs", []string{batchv1.JobTrackingFinalizer}
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	pod, err := p.client.CoreV1().Pods(p.namespace).Create(p.Context(), pod, metav1.CreateOptions{})
	p.must(err)
	p.Cleanup(func() { p.letGo(context.Background()) })
	p.end(pod, 0)
	p.must(p.client.CoreV1().Pods(p.namespace).Delete(p.Context(), "theirs", metav1.DeleteOptions{}))
	// Another Job in the same namespace has been looked at since.
	p.makeJob(func(job *batchv1.Job) { job.Name = "witness" })
	p.seePods(2)
	p.seePod("theirs", "its finalizer", func(pod *corev1.Pod) bool { return slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) })
}

// suspendedDirectives: what says where a Job runs can be changed while it is suspended and before it ran, and no longer when it runs.
func suspendedDirectives(p *play) {
	p.makeJob(func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(true) })
	p.changeJob(func(job *batchv1.Job) { job.Spec.Template.Spec.NodeSelector = map[string]string{"at": "first"} }) // before any condition
	p.seeJob("suspended", func(job *batchv1.Job) bool { return is(job, batchv1.JobSuspended) })
	p.changeJob(func(job *batchv1.Job) {
		job.Spec.Template.Spec.NodeSelector = map[string]string{"at": "last"}
		job.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}}
		job.Spec.Template.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/gate"}}
		job.Spec.Template.Annotations = map[string]string{"note": "yes"}
	})
	p.changeJob(func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(false) })
	p.seeActive(1)
	pod := p.active(p.Context())[0]
	if pod.Spec.NodeSelector["at"] != "last" || len(pod.Spec.SchedulingGates) != 1 || pod.Annotations["note"] != "yes" ||
		!slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == "k" }) {
		p.Errorf("%+v", pod.Spec)
	}
	p.refused("while it runs", p.tryJob(func(job *batchv1.Job) { job.Spec.Template.Spec.NodeSelector = map[string]string{"at": "never"} }))
	p.changeJob(func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(true) })
	p.seeJob("suspended again", func(job *batchv1.Job) bool { return is(job, batchv1.JobSuspended) && job.Status.Active == 0 })
	p.changeJob(func(job *batchv1.Job) { job.Spec.Template.Spec.NodeSelector = map[string]string{"at": "again"} })
}

func requests(cpu string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}}
}

func setRequests(cpu string) func(*batchv1.Job) {
	return func(job *batchv1.Job) { job.Spec.Template.Spec.Containers[0].Resources = requests(cpu) }
}

func (p *play) requested() string {
	p.Helper()
	p.seeActive(1)
	pods := p.active(p.Context())
	if len(pods) != 1 {
		p.Fatalf("%d pods", len(pods))
	}
	return pods[0].Spec.Containers[0].Resources.Requests.Cpu().String()
}

func suspendedResources(p *play) {
	p.makeJob(func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(true); setRequests("100m")(job) })
	p.changeJob(setRequests("150m")) // before any condition
	p.seeJob("suspended", func(job *batchv1.Job) bool { return is(job, batchv1.JobSuspended) })
	p.changeJob(setRequests("200m"))
	p.changeJob(func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(false) })
	if cpu := p.requested(); cpu != "200m" {
		p.Errorf("it has %s", cpu)
	}
	p.refused("while it runs", p.tryJob(setRequests("300m")))
	p.changeJob(func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(true) })
	p.seeJob("suspended again", func(job *batchv1.Job) bool { return is(job, batchv1.JobSuspended) && job.Status.Active == 0 })
	p.changeJob(setRequests("300m"))
	p.changeJob(func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(false) })
	if cpu := p.requested(); cpu != "300m" {
		p.Errorf("it has %s", cpu)
	}
}

// suspendedWaits: under the policy Failed new pods, with new resources, come when the old ones have gone.
func suspendedWaits(p *play) {
	p.makeJob(func(job *batchv1.Job) {
		setRequests("100m")(job)
		job.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed)
		job.Spec.Template.Finalizers = []string{held}
	})
	p.Cleanup(func() { p.letGo(context.Background()) })
	p.seeActive(1)
	p.changeJob(func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(true) })
	p.seeJob("its pod goes", func(job *batchv1.Job) bool {
		return is(job, batchv1.JobSuspended) && job.Status.Active == 0 && ptr.Deref(job.Status.Terminating, 0) == 1
	})
	p.changeJob(setRequests("200m"))
	p.changeJob(func(job *batchv1.Job) { job.Spec.Suspend = ptr.To(false) })
	p.seeJob("resumed, and its pod still goes", func(job *batchv1.Job) bool {
		return !is(job, batchv1.JobSuspended) && job.Status.Active == 0 && ptr.Deref(job.Status.Terminating, 0) == 1
	})
	for _, pod := range p.pods(p.Context()) {
		if slices.Contains(pod.Finalizers, held) {
			_, err := p.client.CoreV1().Pods(p.namespace).Patch(p.Context(), pod.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			p.must(err)
		}
	}
	if cpu := p.requested(); cpu != "200m" {
		p.Errorf("it has %s", cpu)
	}
}

func suspendedEmpty(p *play) {
	p.makeJob(func(job *batchv1.Job) { job.Spec.Suspend, job.Spec.Completions = ptr.To(true), new(int32) })
	p.seeJob("complete", func(job *batchv1.Job) bool { return is(job, batchv1.JobComplete) })
}
