package rolloutstatus

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/setpoint-io/setpoint/setpointtest"
	"github.com/setpoint-io/setpoint/test/judges"
)

// jobs are what is run, by its spec; the pods' exit code; and the patches that a user sends, each half a second after the one before.
var jobs = []struct {
	name, spec, exitCode string
	patches              []string
	// ends is the condition that it ends with.
	ends string
}{
	{"one pod", "{}", "0", nil, "Complete"},
	{"several pods", "{completions: 5, parallelism: 2}", "0", nil, "Complete"},
	{"indexed", "{completions: 4, parallelism: 4, completionMode: Indexed}", "0", nil, "Complete"},
	{"a work queue", "{parallelism: 3}", "0", nil, "Complete"},
	{"success by policy", "{completions: 4, parallelism: 2, completionMode: Indexed, successPolicy: {rules: [{succeededCount: 1}]}}", "0", nil, "Complete"},
	{"fails", "{backoffLimit: 1}", "1", nil, "Failed"},
	{"fails beside others", "{completions: 5, parallelism: 4, backoffLimit: 0}", "1", nil, "Failed"},
	{"deadline", "{activeDeadlineSeconds: 1, parallelism: 2, completions: 9}", "0", nil, "Failed"},
	{"suspended and resumed", "{completions: 3, parallelism: 3}", "0", []string{`{"spec":{"suspend":true}}`, `{"spec":{"suspend":false}}`}, "Complete"},
	{"fewer at a time", "{completions: 6, parallelism: 4}", "0", []string{`{"spec":{"parallelism":1}}`, `{"spec":{"parallelism":0}}`, `{"spec":{"parallelism":3}}`}, "Complete"},
}

const jobManifest = `{apiVersion: batch/v1, kind: Job, metadata: {name: w}, spec: {%s template: {metadata: {annotations:
{setpoint.io/simulated-exit-code: %q}}, spec: {restartPolicy: Never, containers: [{name: c, image: v1, command: [sleep, "1"]}]}}}}`

// TestNoJobIsToldToHaveEndedTooEarly: whoever waits for a Job is told of its end when its pods have ended, once, and with counts that agree.
func TestNoJobIsToldToHaveEndedTooEarly(t *testing.T) {
	for _, job := range jobs {
		t.Run(strings.ReplaceAll(job.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := setpointtest.Start(t, setpointtest.Config{Nodes: nodes})
				c.Advance(time.Minute) // until the nodes are ready
				client, err := dynamic.NewForConfig(c.RESTConfig())
				if err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				r, all := &record{}, judges.Follow(t, c.RESTConfig(), judges.Resources...)
				objects := client.Resource(batchv1.SchemeGroupVersion.WithResource("jobs")).Namespace(c.Namespace())
				r.follow(ctx, t, objects, metav1.ListOptions{})
				r.follow(ctx, t, client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(c.Namespace()), metav1.ListOptions{})
				c.Apply(fmt.Sprintf(jobManifest, fields(job.spec), job.exitCode))
				for _, patch := range job.patches {
					c.Advance(time.Second / 2)
					if _, err := objects.Patch(ctx, "w", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
						t.Fatal(err)
					}
				}
				c.Advance(2 * time.Minute)
				j := &jobJudge{pods: map[string]*corev1.Pod{}}
				r.replay(t, j.seePod, func(object *unstructured.Unstructured) { j.seeJob(t, object) })
				for _, finding := range j.findings {
					t.Error(finding)
				}
				all.Judged(t).Report(t)
				if end := j.end(); end != job.ends {
					t.Errorf("it ended with %q, want %q", end, job.ends)
				}
			})
		})
	}
}

// jobJudge reads versions of one Job and of its pods in the order in which they were stored.
type jobJudge struct {
	pods     map[string]*corev1.Pod
	last     *batchv1.Job
	findings []string
}

func (j *jobJudge) seePod(pod *corev1.Pod, gone bool) {
	j.pods[pod.Name] = pod
	if gone {
		delete(j.pods, pod.Name)
	}
}

func (j *jobJudge) seeJob(t *testing.T, object *unstructured.Unstructured) {
	job := &batchv1.Job{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, job); err != nil {
		t.Fatal(err)
	}
	before := j.last
	if before == nil {
		before = &batchv1.Job{}
	}
	j.last = job
	s, running := job.Status, j.running()
	for what, wrong := range map[string]bool{
		"it ended, and goes on":                            ended(before) != "" && ended(job) != ended(before),
		"it is both complete and failed":                   is(job, batchv1.JobComplete) && is(job, batchv1.JobFailed),
		"it has ended, and pods run":                       ended(job) != "" && running > 0,
		"it has ended, and counts active pods":             ended(job) != "" && s.Active > 0,
		"it is complete, and nothing said it would be":     is(job, batchv1.JobComplete) && !is(before, batchv1.JobSuccessCriteriaMet) && !is(before, batchv1.JobComplete),
		"it has failed, and nothing said it would":         is(job, batchv1.JobFailed) && !is(before, batchv1.JobFailureTarget) && !is(before, batchv1.JobFailed),
		"its completion time and its condition differ":     (s.CompletionTime != nil) != is(job, batchv1.JobComplete),
		"fewer have succeeded than before":                 s.Succeeded < before.Status.Succeeded,
		"fewer have failed than before":                    s.Failed < before.Status.Failed,
		"it is complete, and too few pods succeeded":       is(job, batchv1.JobComplete) && job.Spec.SuccessPolicy == nil && s.Succeeded < wantedOf(job),
		"it has ended, and pods are not counted yet":       ended(job) != "" && s.UncountedTerminatedPods != nil && len(s.UncountedTerminatedPods.Succeeded)+len(s.UncountedTerminatedPods.Failed) > 0,
		"pods were counted before the Job had a start":     s.Succeeded+s.Failed > 0 && s.StartTime == nil && !*job.Spec.Suspend,
		"it is suspended, says so, and counts active ones": is(job, batchv1.JobSuspended) && s.Active > 0,
	} {
		if wrong {
			j.findings = append(j.findings, fmt.Sprintf("%s\n\tstatus %+v, %d pods run", what, s, running))
		}
	}
}

// running is how many pods have not ended.
func (j *jobJudge) running() (n int) {
	for _, pod := range j.pods {
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			n++
		}
	}
	return n
}

func (j *jobJudge) end() string {
	if j.last == nil {
		return ""
	}
	return ended(j.last)
}

func wantedOf(job *batchv1.Job) int32 {
	if job.Spec.Completions == nil {
		return 1
	}
	return *job.Spec.Completions
}

// ended is the condition that a Job has ended with.
func ended(job *batchv1.Job) string {
	for _, kind := range []batchv1.JobConditionType{batchv1.JobComplete, batchv1.JobFailed} {
		if is(job, kind) {
			return string(kind)
		}
	}
	return ""
}

func is(job *batchv1.Job, kind batchv1.JobConditionType) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// TestJobJudge: the judge finds what would mislead whoever waits for a Job. (The API refuses most of these.)
func TestJobJudge(t *testing.T) {
	for _, c := range []struct {
		name     string
		statuses []string
		finding  string
	}{
		{"pods that run", []string{"{conditions: [{type: SuccessCriteriaMet, status: 'True'}]}",
			"{succeeded: 1, startTime: '2000-01-01T00:00:00Z', completionTime: '2000-01-01T00:00:00Z', conditions: [{type: SuccessCriteriaMet, status: 'True'}, {type: Complete, status: 'True'}]}"}, "and pods run"},
		{"without a decision", []string{"{conditions: [{type: Failed, status: 'True'}]}"}, "nothing said it would"},
		{"taken back", []string{"{conditions: [{type: Failed, status: 'True'}]}", "{}"}, "it ended, and goes on"},
		{"counts that fall", []string{"{succeeded: 2}", "{succeeded: 1}"}, "fewer have succeeded"},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			j := &jobJudge{pods: map[string]*corev1.Pod{"p": podOf("v1")}}
			for _, status := range c.statuses {
				j.seeJob(t, read(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: w}, spec: {suspend: false}, status: "+status+"}"))
			}
			if all := strings.Join(j.findings, "\n"); !strings.Contains(all, c.finding) {
				t.Errorf("%q, want %q", all, c.finding)
			}
		})
	}
}
