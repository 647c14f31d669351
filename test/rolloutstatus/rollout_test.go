package rolloutstatus

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/setpoint-io/setpoint/setpointtest"
	"github.com/setpoint-io/setpoint/test/judges"
)

const (
	nodes       = 2
	restartedAt = "kubectl.kubernetes.io/restartedAt"
	// rest is longer than any of these rollouts takes.
	rest = 30 * time.Second
)

// workloads are what is rolled out, by the resource; the pods of each have the label app=w.
var workloads = []struct{ name, resource, spec string }{
	{"Deployment", "deployments", "replicas: 3"},
	{"Deployment of one", "deployments", "replicas: 1"},
	{"Deployment with a large surge", "deployments", "{replicas: 4, strategy: {rollingUpdate: {maxSurge: 3, maxUnavailable: 2}}}"},
	{"Deployment without surge", "deployments", "{replicas: 3, strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}"},
	{"Deployment by Recreate", "deployments", "{replicas: 2, strategy: {type: Recreate}}"},
	{"Deployment with minReadySeconds", "deployments", "{replicas: 2, minReadySeconds: 5}"},
	{"StatefulSet", "statefulsets", "replicas: 3"},
	{"StatefulSet in parallel", "statefulsets", "{replicas: 3, podManagementPolicy: Parallel}"},
	{"DaemonSet", "daemonsets", "{}"},
	{"DaemonSet with surge", "daemonsets", "{updateStrategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}}"},
}

// change is what a user does; patches are merged one after the other, each when the one before has come to rest.
type change struct {
	name    string
	patches []string
}

const (
	image = `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"%s"}]}}}}`
	again = `{"spec":{"template":{"metadata":{"annotations":{"` + restartedAt + `":"%s"}}}}}`
	scale = `{"spec":{"replicas":%d}}`
	both  = `{"spec":{"replicas":%d,"template":{"spec":{"containers":[{"name":"c","image":"%s"}]}}}}`
)

var changes = []change{
	{"rollout", []string{fmt.Sprintf(image, "v2")}},
	{"restart", []string{fmt.Sprintf(again, "now"), fmt.Sprintf(again, "later")}},
	{"undo", []string{fmt.Sprintf(image, "v2"), fmt.Sprintf(image, "v1")}},
	{"scale", []string{fmt.Sprintf(scale, 6), fmt.Sprintf(scale, 0), fmt.Sprintf(scale, 2)}},
	{"scale and rollout", []string{fmt.Sprintf(both, 5, "v2"), fmt.Sprintf(both, 2, "v1")}},
}

// TestNobodyIsToldTooEarly: no version of a workload looks finished before its pods are. The short form is the first workload of each
// resource.
func TestNobodyIsToldTooEarly(t *testing.T) {
	seen := map[string]bool{}
	for _, w := range workloads {
		if testing.Short() && seen[w.resource] {
			continue
		}
		seen[w.resource] = true
		t.Run(strings.ReplaceAll(w.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c := setpointtest.Start(t, setpointtest.Config{Nodes: nodes})
				c.Advance(time.Minute) // until the nodes are ready
				record := judges.Follow(t, c.RESTConfig(), judges.Resources...)
				for i, ch := range changes {
					if w.resource == "daemonsets" && strings.Contains(ch.name, "scale") {
						continue
					}
					play(t, c.In(c.Namespace()), fmt.Sprint("w", i), w.resource, w.spec, ch)
				}
				record.Judged(t).Report(t)
			})
		})
	}
}

// play makes the workload, changes it, changes it once more and deletes it in the middle, and judges all that was stored.
func play(t *testing.T, c *setpointtest.Cluster, name, resource, spec string, ch change) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	workload := appsv1.SchemeGroupVersion.WithResource(resource)
	r := &record{}
	r.follow(ctx, t, client.Resource(workload).Namespace(c.Namespace()), metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	pods := client.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(c.Namespace())
	r.follow(ctx, t, pods, metav1.ListOptions{LabelSelector: "app=" + name})
	c.Apply(manifest(name, resource, spec))
	c.Advance(rest)
	patch := func(body string) {
		_, err := client.Resource(workload).Namespace(c.Namespace()).Patch(ctx, name, types.StrategicMergePatchType, []byte(body), metav1.PatchOptions{})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, body := range ch.patches {
		patch(body)
		c.Advance(rest)
	}
	patch(fmt.Sprintf(image, "last"))
	c.Advance(time.Second)
	err = client.Resource(workload).Namespace(c.Namespace()).Delete(ctx, name,
		metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationForeground)})
	if err != nil {
		t.Fatal(err)
	}
	c.Advance(rest)
	assertFair(t, ch.name, r.judged(t), len(ch.patches))
}

// assertFair reports findings, and rules that never called a rollout finished: they would find nothing.
func assertFair(t *testing.T, name string, j *judge, rollouts int) {
	t.Helper()
	for _, finding := range j.findings {
		t.Errorf("%s: %s", name, finding)
	}
	for _, r := range rules {
		if n, told := j.told[r.name]; told && n <= rollouts {
			t.Errorf("%s: by the rule of %s only %d versions were finished", name, r.name, n)
		}
	}
}

// manifest is a workload whose pods run v1.
func manifest(name, resource, spec string) string {
	kind := map[string]string{"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}[resource]
	if resource == "statefulsets" {
		spec = strings.Trim(spec, "{}") + ", serviceName: s"
	}
	return fmt.Sprintf(`{apiVersion: apps/v1, kind: %s, metadata: {name: %s}, spec: {%s selector: {matchLabels: {app: %[2]s}},
template: {metadata: {labels: {app: %[2]s}}, spec: {containers: [{name: c, image: v1}]}}}}`, kind, name, fields(spec))
}

// fields are those of a flow mapping, with a comma at the end.
func fields(spec string) string {
	spec = strings.TrimSuffix(strings.TrimPrefix(spec, "{"), "}")
	if spec == "" {
		return ""
	}
	return spec + ","
}

// record is all that watches brought.
type record struct {
	mu     sync.Mutex
	events []watch.Event
}

// follow watches until ctx ends.
func (r *record) follow(ctx context.Context, t *testing.T, resource dynamic.ResourceInterface, options metav1.ListOptions) {
	t.Helper()
	w, err := resource.Watch(ctx, options)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer w.Stop()
		for event := range w.ResultChan() {
			r.mu.Lock()
			r.events = append(r.events, event)
			r.mu.Unlock()
		}
	}()
}

// judged is what a judge says about the events.
func (r *record) judged(t *testing.T) *judge {
	t.Helper()
	j := newJudge(nodes)
	r.replay(t, j.seePod, j.seeWorkload)
	return j
}

// replay shows the events in the order of their revisions.
func (r *record) replay(t *testing.T, seePod func(pod *corev1.Pod, gone bool), seeOther func(*unstructured.Unstructured)) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	revision := func(event watch.Event) int {
		n, err := strconv.Atoi(event.Object.(*unstructured.Unstructured).GetResourceVersion())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	slices.SortStableFunc(r.events, func(a, b watch.Event) int { return cmp.Compare(revision(a), revision(b)) })
	for _, event := range r.events {
		object := event.Object.(*unstructured.Unstructured)
		if object.GetKind() != "Pod" {
			seeOther(object)
			continue
		}
		var pod corev1.Pod
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &pod); err != nil {
			t.Fatal(err)
		}
		seePod(&pod, event.Type == watch.Deleted)
	}
}
