package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
)

// readPod parses a pod and gives it its defaults. Short cases omit the container.
func readPod(t *testing.T, text string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(text), pod); err != nil {
		t.Fatal(err)
	}
	if len(pod.Spec.Containers) == 0 {
		pod.Spec.Containers = []corev1.Container{{Name: "app", Image: "app:1"}}
	}
	podspec.DefaultPod(pod)
	return pod
}

func TestPodStatusAndRestarts(t *testing.T) {
	const sidecar = `spec: {initContainers: [{name: mesh, restartPolicy: Always}, {name: once}], containers: [{name: app}]}
`
	for name, test := range map[string]struct{ pod, ready, status, restarts string }{
		"pending": {`status: {phase: Pending}`, "0/1", "Pending", "0"},
		"reason":  {`status: {phase: Failed, reason: Evicted}`, "0/1", "Evicted", "0"},
		"gated":   {`status: {phase: Pending, conditions: [{type: PodScheduled, status: "False", reason: SchedulingGated}]}`, "0/1", "SchedulingGated", "0"},
		"creating": {`status: {phase: Pending, containerStatuses: [{name: app, state: {waiting: {reason: ContainerCreating}}}]}`,
			"0/1", "ContainerCreating", "0"},
		"running": {`status: {phase: Running, containerStatuses: [{name: app, ready: true, state: {running: {}}}]}`, "1/1", "Running", "0"},
		"crash loop": {`status: {phase: Running, containerStatuses: [{name: app, restartCount: 5, state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1, finishedAt: "2026-07-01T11:57:00Z"}}}]}`,
			"0/1", "CrashLoopBackOff", "5 (3m ago)"},
		"first container speaks": {`spec: {containers: [{name: a}, {name: b}]}
status: {phase: Running, containerStatuses: [{name: a, state: {waiting: {reason: ImagePullBackOff}}}, {name: b, state: {waiting: {reason: CrashLoopBackOff}}}]}`,
			"0/2", "ImagePullBackOff", "0"},
		"exit code": {`status: {phase: Running, containerStatuses: [{name: app, state: {terminated: {exitCode: 3}}}]}`, "0/1", "ExitCode:3", "0"},
		"signal":    {`status: {phase: Running, containerStatuses: [{name: app, state: {terminated: {exitCode: 137, signal: 9}}}]}`, "0/1", "Signal:9", "0"},
		"completed": {`status: {phase: Succeeded, containerStatuses: [{name: app, state: {terminated: {exitCode: 0, reason: Completed}}}]}`, "0/1", "Completed", "0"},
		"one completed, one runs": {`spec: {containers: [{name: a}, {name: b}]}
status: {phase: Running, conditions: [{type: Ready, status: "True"}], containerStatuses: [{name: a, state: {terminated: {exitCode: 0, reason: Completed}}}, {name: b, ready: true, state: {running: {}}}]}`,
			"1/2", "Running", "0"},
		"one completed, one runs, not ready": {`spec: {containers: [{name: a}, {name: b}]}
status: {phase: Running, containerStatuses: [{name: a, state: {terminated: {exitCode: 0, reason: Completed}}}, {name: b, ready: true, state: {running: {}}}]}`,
			"1/2", "NotReady", "0"},
		"init waits": {`spec: {initContainers: [{name: a}, {name: b}]}
status: {phase: Pending, initContainerStatuses: [{name: a, state: {terminated: {exitCode: 0}}}, {name: b, state: {waiting: {reason: PodInitializing}}}]}`,
			"0/1", "Init:1/2", "0"},
		"init fails": {`spec: {initContainers: [{name: a}]}
status: {phase: Pending, initContainerStatuses: [{name: a, restartCount: 2, state: {terminated: {exitCode: 1, reason: Error}}, lastState: {terminated: {exitCode: 1, finishedAt: "2026-07-01T11:59:00Z"}}}]}`,
			"0/1", "Init:Error", "2 (60s ago)"},
		"init crash loop": {`spec: {initContainers: [{name: a}]}
status: {phase: Pending, initContainerStatuses: [{name: a, restartCount: 1, state: {waiting: {reason: CrashLoopBackOff}}}]}`,
			"0/1", "Init:CrashLoopBackOff", "1"},
		"init exit code": {`spec: {initContainers: [{name: a}]}
status: {phase: Pending, initContainerStatuses: [{name: a, state: {terminated: {exitCode: 7}}}]}`, "0/1", "Init:ExitCode:7", "0"},
		"sidecar started": {sidecar + `status: {phase: Pending, initContainerStatuses: [{name: mesh, ready: true, started: true, state: {running: {}}}, {name: once, state: {running: {}}}]}`,
			"1/2", "Init:1/2", "0"},
		"sidecar beside the app": {sidecar + `status: {phase: Running, conditions: [{type: Initialized, status: "True"}], initContainerStatuses: [{name: mesh, ready: true, started: true, restartCount: 1, state: {running: {}}}, {name: once, restartCount: 4, state: {terminated: {exitCode: 0}}}], containerStatuses: [{name: app, ready: true, restartCount: 2, state: {running: {}}}]}`,
			"2/2", "Running", "3"},
		"terminating": {`metadata: {deletionTimestamp: "2026-07-01T11:00:00Z"}
status: {phase: Running, containerStatuses: [{name: app, ready: true, state: {running: {}}}]}`, "1/1", "Terminating", "0"},
		"deleted after its end": {`metadata: {deletionTimestamp: "2026-07-01T11:00:00Z"}
status: {phase: Succeeded, containerStatuses: [{name: app, state: {terminated: {exitCode: 0, reason: Completed}}}]}`, "0/1", "Completed", "0"},
		"node lost": {`metadata: {deletionTimestamp: "2026-07-01T11:00:00Z"}
status: {phase: Running, reason: NodeLost}`, "0/1", "Unknown", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := readPod(t, test.pod)
			if got := podReadyCell(pod); got != test.ready {
				t.Errorf("READY = %q, want %q", got, test.ready)
			}
			if got := podStatusCell(pod); got != test.status {
				t.Errorf("STATUS = %q, want %q", got, test.status)
			}
			if got := podRestartsCell(pod, kindstest.Now); got != test.restarts {
				t.Errorf("RESTARTS = %q, want %q", got, test.restarts)
			}
		})
	}
}

func TestPodCreate(t *testing.T) {
	pod := readPod(t, `spec: {schedulingGates: [{name: example.org/wait}], containers: [{name: app, image: a, resources: {limits: {cpu: 100m, memory: 1Mi}}}]}
status: {phase: Running, podIP: 192.0.2.1}`)
	preparePodCreate(pod)
	if pod.Status.Phase != corev1.PodPending || pod.Status.PodIP != "" || pod.Status.QOSClass != corev1.PodQOSGuaranteed {
		t.Errorf("status = %+v", pod.Status)
	}
	if !gated(pod) {
		t.Error("a gated pod must say so")
	}
}

func TestPodStatusUpdateKeepsSpecAndOwners(t *testing.T) {
	old := readPod(t, `metadata: {ownerReferences: [{kind: ReplicaSet, name: web, uid: u, apiVersion: apps/v1}]}
spec: {nodeName: node-1}
status: {qosClass: Burstable}`)
	pod := readPod(t, `{spec: {nodeName: other}, status: {phase: Running}}`)
	preparePodStatus(pod, old)
	if pod.Spec.NodeName != "node-1" || len(pod.OwnerReferences) != 1 || pod.Status.QOSClass != corev1.PodQOSBurstable {
		t.Errorf("pod = %+v", pod)
	}
	pod.Status.QOSClass = corev1.PodQOSGuaranteed
	if errs := validatePodStatus(pod, old); len(errs) != 1 || errs[0].Field != "status.qosClass" {
		t.Errorf("changed qosClass: %v", errs)
	}
}

func TestPodGracefulDelete(t *testing.T) {
	for name, test := range map[string]struct {
		pod  string
		asks *int64
		want int64
	}{
		"from the spec":   {`spec: {nodeName: n, terminationGracePeriodSeconds: 12}`, nil, 12},
		"default":         {`spec: {nodeName: n}`, nil, 30},
		"from the client": {`spec: {nodeName: n}`, ptr.To[int64](5), 5},
		"negative":        {`spec: {nodeName: n, terminationGracePeriodSeconds: -3}`, nil, 1},
		"unscheduled":     {`spec: {terminationGracePeriodSeconds: 12}`, ptr.To[int64](5), 0},
		"failed":          {`{spec: {nodeName: n}, status: {phase: Failed}}`, nil, 0},
		"succeeded":       {`{spec: {nodeName: n}, status: {phase: Succeeded}}`, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			options := &metav1.DeleteOptions{GracePeriodSeconds: test.asks}
			if !podGracefulDelete(readPod(t, test.pod), options) || *options.GracePeriodSeconds != test.want {
				t.Errorf("grace = %d, want %d", *options.GracePeriodSeconds, test.want)
			}
		})
	}
}

// Resources of the whole pod are completed after admission, from all that is in the pod then.
func TestPodResourcesForTheWholePod(t *testing.T) {
	containers := func(resources ...string) (text string) {
		for i, r := range resources {
			text += fmt.Sprintf("{name: c%d, image: a, resources: %s}, ", i, r)
		}
		return "[" + text + "]"
	}
	for name, test := range map[string]struct {
		whole, containers, init string
		requests, limits        string
	}{
		"requests":           {`{limits: {cpu: "2", memory: 1Gi}}`, containers(`{requests: {cpu: 250m}}`, `{requests: {cpu: 250m}}`), `[]`, "cpu=500m memory=1Gi", "cpu=2 memory=1Gi"},
		"limits":             {`{requests: {cpu: 100m, memory: 64Mi}}`, containers(`{limits: {cpu: 200m, memory: 10Mi}, requests: {cpu: 10m}}`, `{limits: {cpu: 50m, memory: 10Mi}, requests: {cpu: 10m}}`), `[]`, "cpu=100m memory=64Mi", "cpu=250m memory=64Mi"},
		"one without limits": {`{requests: {cpu: 100m}}`, containers(`{limits: {cpu: 50m}}`, `{}`), `[]`, "cpu=100m", ""},
		"an init container":  {`{requests: {cpu: 100m}}`, containers(`{limits: {cpu: 50m}}`), containers(`{}`), "cpu=100m", ""},
		"huge pages":         {`{requests: {cpu: 100m}}`, containers(`{limits: {hugepages-2Mi: 4Mi, memory: 1Mi}}`), `[]`, "cpu=100m hugepages-2Mi=4Mi memory=1Mi", "hugepages-2Mi=4Mi memory=1Mi"},
		"nothing":            {`{}`, containers(`{limits: {cpu: 50m}}`), `[]`, "", ""},
		"other resources":    {`{requests: {cpu: "1"}}`, containers(`{limits: {example.com/a: "1", cpu: "1"}}`), `[]`, "cpu=1", "cpu=1"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := readPod(t, "spec: {resources: "+test.whole+", containers: "+test.containers+", initContainers: "+test.init+"}")
			preparePodCreate(pod)
			got := []string{quantities(pod.Spec.Resources.Requests), quantities(pod.Spec.Resources.Limits)}
			if diff := cmp.Diff([]string{test.requests, test.limits}, got); diff != "" {
				t.Error("requests, limits (-want +got):\n", diff)
			}
		})
	}
}

func quantities(list corev1.ResourceList) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		amount := list[name]
		all = append(all, string(name)+"="+amount.String())
	}
	return strings.Join(all, " ")
}

// The defaults run before admission, and again on what is stored: they leave resources of the whole pod to the creation.
func TestPodResourcesWaitForAdmission(t *testing.T) {
	pod := readPod(t, `spec: {resources: {limits: {cpu: "2"}}, containers: [{name: a, image: a}]}`)
	if requests := pod.Spec.Resources.Requests; requests != nil {
		t.Errorf("requests = %v before admission", requests)
	}
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: apiresource.MustParse("500m")}
	preparePodCreate(pod)
	if got := quantities(pod.Spec.Resources.Requests); got != "cpu=500m" {
		t.Errorf("requests = %s", got)
	}
}

// A resize completes them too, and clients that do not know them keep them.
func TestPodResourcesOfAChange(t *testing.T) {
	const text = `spec: {%s containers: [{name: a, image: a, resources: {limits: {cpu: 50m}}}]}`
	old := readPod(t, fmt.Sprintf(text, `resources: {requests: {cpu: 100m}},`))
	old.Generation = 1
	pod := readPod(t, fmt.Sprintf(text, ""))
	preparePodUpdate(pod, old)
	if got := quantities(pod.Spec.Resources.Requests); got != "cpu=100m" {
		t.Errorf("updated requests = %s", got)
	}
	pod = readPod(t, fmt.Sprintf(text, `resources: {requests: {cpu: 200m}},`))
	prepareResize(pod, old, time.Time{})
	if got := quantities(pod.Spec.Resources.Limits); got != "cpu=200m" || pod.Generation != 2 || old.Spec.Resources.Limits != nil {
		t.Errorf("resized limits = %s, generation %d, the old pod's %v", got, pod.Generation, old.Spec.Resources.Limits)
	}
}
