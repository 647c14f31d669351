package batch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
)

func readJob(t *testing.T, text string) *batchv1.Job {
	t.Helper()
	job := &batchv1.Job{}
	if err := yaml.UnmarshalStrict([]byte(text), job); err != nil {
		t.Fatal(err)
	}
	defaultJob(job)
	return job
}

func TestJobStatusDevelops(t *testing.T) {
	const (
		indexedSpec = `spec: {completions: 5, completionMode: Indexed, backoffLimitPerIndex: 1}` + "\n"
		done        = `status: {startTime: "2026-07-01T11:00:00Z", completionTime: "2026-07-01T11:01:00Z", conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}`
	)
	for name, test := range map[string]struct {
		old, new string
		want     []string
	}{
		"done":      {`{}`, done, nil},
		"as before": {done, done, nil},
		"resurrected": {done, `status: {startTime: "2026-07-01T11:00:00Z"}`, []string{
			`status.conditions: Invalid value: cannot disable the SuccessCriteriaMet=True condition`,
			`status.conditions: Invalid value: cannot disable the terminal Complete=True condition`,
		}},
		"done too early": {`{}`, `status: {active: 1, ready: 2, terminating: 1, uncountedTerminatedPods: {failed: [a, a]}, conditions: [{type: Complete, status: "True"}, {type: Failed, status: "True"}]}`, []string{
			`status.active: Invalid value: 1: active>0 is invalid for finished job`,
			`status.completionTime: Required value: completionTime is required for Complete jobs`,
			`status.conditions: Invalid value: cannot set Complete=True and Failed=true conditions`,
			`status.conditions: Invalid value: cannot set Complete=True condition without the SuccessCriteriaMet=true condition`,
			`status.conditions: Invalid value: cannot set Failed=True condition without the FailureTarget=true condition`,
			`status.ready: Invalid value: 2: cannot set more ready pods than active`,
			`status.startTime: Required value: startTime is required for finished job`,
			`status.terminating: Invalid value: 1: terminating>0 is invalid for finished job`,
			`status.uncountedTerminatedPods.failed[1]: Duplicate value: "a"`,
			`status.uncountedTerminatedPods: Invalid value: {"failed":["a","a"]}: must be empty for finished job`,
		}},
		"counts back": {`status: {failed: 2, succeeded: 2, startTime: "2026-07-01T11:00:00Z"}`, `status: {failed: 1, succeeded: 1, startTime: "2026-07-01T11:30:00Z"}`, []string{
			`status.failed: Invalid value: 1: cannot decrease the failed counter`,
			`status.startTime: Invalid value: "2026-07-01T11:30:00Z": field is immutable for unsuspended job once set`,
			`status.succeeded: Invalid value: 1: cannot decrease the succeeded counter`,
		}},
		"resumed": {`status: {startTime: "2026-07-01T11:00:00Z", conditions: [{type: Suspended, status: "True"}]}`,
			`status: {startTime: "2026-07-01T11:30:00Z", conditions: [{type: Suspended, status: "False"}]}`, nil},
		"indexes": {indexedSpec, indexedSpec + `status: {completedIndexes: "0-2", failedIndexes: "3-4"}`, nil},
		"indexes twice": {indexedSpec, indexedSpec + `status: {completedIndexes: "0-2", failedIndexes: "2,4"}`, []string{
			`status.failedIndexes: Invalid value: "2,4": failedIndexes and completedIndexes overlap at index: 2`,
		}},
		"indexes too large": {indexedSpec, indexedSpec + `status: {completedIndexes: "0-7", failedIndexes: "1,1"}`, []string{
			`status.completedIndexes: Invalid value: "0-7": error parsing completedIndexes: too large index: "7"`,
			`status.failedIndexes: Invalid value: "1,1": error parsing failedIndexes: non-increasing order, previous: 1, current: 1`,
		}},
		"indexes of a job without": {`{}`, `status: {completedIndexes: "0", failedIndexes: ""}`, []string{
			`status.completedIndexes: Invalid value: "0": cannot set non-empty completedIndexes when non-indexed completion mode`,
			`status.failedIndexes: Invalid value: "": cannot set non-null failedIndexes when backoffLimitPerIndex is null`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := kindstest.Messages(validateJobStatus(readJob(t, test.new), readJob(t, test.old)))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error("(-want +got):\n", diff)
			}
		})
	}
}

// While a job sleeps, a queue may decide where its pods run and what they get.
func TestSuspendedJobCanBeRetargeted(t *testing.T) {
	const (
		pod      = `template: {spec: {restartPolicy: Never, containers: [{name: a, image: "a:1"}]}}`
		retarget = `template: {metadata: {labels: {zone: b}}, spec: {restartPolicy: Never, nodeSelector: {zone: b}, containers: [{name: a, image: "a:1", resources: {requests: {cpu: "1"}}}]}}`
		image    = `template: {spec: {restartPolicy: Never, containers: [{name: a, image: "a:2"}]}}`
	)
	for name, test := range map[string]struct {
		old, new string
		refused  string
	}{
		"asleep":                {`{spec: {suspend: true, ` + pod + `}}`, `{spec: {suspend: true, ` + retarget + `}}`, ""},
		"awake":                 {`{spec: {` + pod + `}}`, `{spec: {` + retarget + `}}`, "spec.template"},
		"asleep, has pods":      {`{spec: {suspend: true, ` + pod + `}, status: {active: 1}}`, `{spec: {suspend: true, ` + retarget + `}}`, "spec.template"},
		"asleep, another image": {`{spec: {suspend: true, ` + pod + `}}`, `{spec: {suspend: true, ` + image + `}}`, "spec.template.spec"},
	} {
		t.Run(name, func(t *testing.T) {
			job, old := readJob(t, test.new), readJob(t, test.old)
			refused := ""
			for _, err := range validateTemplateUpdate(job, old, nil) {
				refused = "spec." + err.Field
			}
			if refused != test.refused {
				t.Errorf("refused %q, want %q", refused, test.refused)
			}
		})
	}
}
