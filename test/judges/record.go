package judges

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Record is all that watches brought.
type Record struct {
	mu      sync.Mutex // guards events
	events  []watch.Event
	stop    context.CancelFunc
	watches sync.WaitGroup
}

// Resources are those that a cluster always has and that the Court judges, or needs as evidence.
var Resources = []schema.GroupVersionResource{
	{Version: "v1", Resource: "namespaces"}, {Version: "v1", Resource: "nodes"}, {Version: "v1", Resource: "pods"},
	{Version: "v1", Resource: "services"}, {Version: "v1", Resource: "persistentvolumeclaims"}, {Version: "v1", Resource: "persistentvolumes"},
	{Version: "v1", Resource: "configmaps"}, {Group: "apps", Version: "v1", Resource: "deployments"},
	{Group: "apps", Version: "v1", Resource: "replicasets"},
	{Group: "apps", Version: "v1", Resource: "statefulsets"}, {Group: "apps", Version: "v1", Resource: "daemonsets"},
	{Group: "batch", Version: "v1", Resource: "jobs"}, {Group: "batch", Version: "v1", Resource: "cronjobs"},
	{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}, {Group: "networking.k8s.io", Version: "v1", Resource: "ingresses"},
	{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"},
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"},
}

// Follow watches resources in all namespaces, from what there is now on, until Judged is called or the test ends.
func Follow(t testing.TB, access *rest.Config, resources ...schema.GroupVersionResource) *Record {
	t.Helper()
	access = rest.CopyConfig(access)
	access.QPS = -1
	client, err := dynamic.NewForConfig(access)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	r := &Record{stop: stop}
	t.Cleanup(r.end)
	for _, resource := range resources {
		w, err := client.Resource(resource).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatalf("%s: %v", resource, err)
		}
		r.watches.Go(func() { r.read(ctx, w) })
	}
	return r
}

// read keeps what a watch brings until ctx ends; what it says of its own end then is nothing.
func (r *Record) read(ctx context.Context, w watch.Interface) {
	defer w.Stop()
	for event := range w.ResultChan() {
		if event.Type == watch.Error && ctx.Err() != nil {
			return
		}
		r.mu.Lock()
		r.events = append(r.events, event)
		r.mu.Unlock()
	}
}

func (r *Record) end() {
	r.stop()
	r.watches.Wait()
}

// Judged ends the watches and shows a Court all that they brought, in the order of the revisions.
func (r *Record) Judged(t testing.TB) *Court {
	t.Helper()
	c := NewCourt()
	for _, event := range r.Events(t) {
		c.See(event.Object.(*unstructured.Unstructured), event.Type == watch.Deleted)
	}
	return c
}

// Events ends the watches and returns what they brought, in the order of the revisions.
func (r *Record) Events(t testing.TB) []watch.Event {
	t.Helper()
	r.end()
	revisions := map[any]int{}
	for _, event := range r.events {
		o, ok := event.Object.(*unstructured.Unstructured)
		if event.Type == watch.Error || !ok {
			t.Fatalf("a watch has ended too early: %v", event.Object)
		}
		n, err := strconv.Atoi(o.GetResourceVersion())
		if err != nil {
			t.Fatal(err)
		}
		revisions[o] = n
	}
	slices.SortStableFunc(r.events, func(a, b watch.Event) int { return cmp.Compare(revisions[a.Object], revisions[b.Object]) })
	return r.events
}

// findingsMax is how many findings a test writes.
const findingsMax = 10

// Report fails a test for each finding, and says what was judged.
func (c *Court) Report(t testing.TB) {
	t.Helper()
	for i, finding := range c.Findings {
		if i == findingsMax {
			t.Errorf("and %d more", len(c.Findings)-findingsMax)
			break
		}
		t.Error(finding)
	}
	t.Log(c.Table())
}

// Table is how many versions of each kind were judged, and how often a rule called one done or failed.
func (c *Court) Table() string {
	var rows []string
	for _, kind := range kinds {
		done, failed := 0, 0
		for _, rule := range Rules {
			done += c.Told[rule.Name+" "+kind+" "+string(Done)]
			failed += c.Told[rule.Name+" "+kind+" "+string(Failed)]
		}
		if n := c.Versions[kind]; n > 0 {
			rows = append(rows, kind+": "+strconv.Itoa(n)+" versions, done "+strconv.Itoa(done)+", failed "+strconv.Itoa(failed))
		}
	}
	return strings.Join(rows, "\n")
}
