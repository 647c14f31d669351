package beside

import (
	"context"
	"net/http"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/testclient"
	"github.com/setpoint-io/setpoint/internal/testlink"
)

// fieldManager is that of setpointtest, so that a test means the same with both.
const fieldManager = "setpointtest"

// Condition is something that an object may come to be. failures name it.
type Condition = testclient.Condition

var (
	// Available: a workload has rolled out and all its replicas are available; another kind has the condition
	// Available.
	Available = testclient.Available
	// Ready: all replicas of a workload are ready; another kind (a Pod, a Node, a custom one) has the condition Ready.
	Ready = testclient.Ready
	// Complete: a Job has the condition Complete.
	Complete = testclient.Complete
	// Failed: a Job has the condition Failed.
	Failed = testclient.Failed
	// Running: a Pod is in the phase Running.
	Running = testclient.Running
	// Bound: a claim is in the phase Bound.
	Bound = testclient.Bound
	// Exists: there is such an object.
	Exists = testclient.Exists
	// Gone: there is no such object.
	Gone = testclient.Gone
)

// True is that the status has a condition of the type with status True, for the present generation.
func True(conditionType string) Condition { return testclient.True(conditionType) }

// Field is that a field has a value, compared as text. name is what failures call it.
func Field(name, value string, path ...string) Condition {
	return testclient.Field(name, value, path...)
}

// That is that a function of the object says so. name is what failures call it.
func That(name string, is func(object *unstructured.Unstructured) bool) Condition {
	return testclient.That(name, is)
}

// Eventually waits until the object is all that is asked of it, and returns it. The target is named as kubectl does:
// deployment/shop, deploy/shop, shops.example.com/blue. A failure says how it is, and what holds it.
func (c *Cluster) Eventually(target string, conditions ...Condition) *unstructured.Unstructured {
	c.t.Helper()
	c.alive()
	object, err := c.client().Eventually(c.ctx, target, conditions...)
	c.must(err)
	return object
}

// Never fails the test if the object becomes so within the cluster's patience; give it with Within.
func (c *Cluster) Never(target string, condition Condition) {
	c.t.Helper()
	c.alive()
	c.must(c.client().Never(c.ctx, target, condition))
}

// Apply applies manifests with server-side apply: files, folders, or YAML itself. Objects without a namespace go to
// that of the view. A kind whose CRD is among them may take a moment.
func (c *Cluster) Apply(manifests ...string) {
	c.t.Helper()
	c.alive()
	c.must(c.client().Apply(c.ctx, manifests...))
}

// ApplyObject applies one object. One that client-go or controller-runtime has made needs no kind.
func (c *Cluster) ApplyObject(object runtime.Object) {
	c.t.Helper()
	c.alive()
	c.must(c.client().ApplyObject(c.ctx, object))
}

// Delete deletes objects, with their dependents in the background. It does not wait; Eventually with Gone does.
func (c *Cluster) Delete(targets ...string) {
	c.t.Helper()
	c.alive()
	c.must(c.client().Delete(c.ctx, targets...))
}

// Get returns an object, or nil if there is none.
func (c *Cluster) Get(target string) *unstructured.Unstructured {
	c.t.Helper()
	c.alive()
	object, err := c.client().Get(c.ctx, target)
	c.must(err)
	return object
}

// Events are the Events about an object, oldest first; of the namespace if target is "".
func (c *Cluster) Events(target string) []corev1.Event {
	c.t.Helper()
	c.alive()
	events, err := c.client().Events(c.ctx, target)
	c.must(err)
	return events
}

// client is what the test asks as the user and in the namespace of the view.
func (c *Cluster) client() *testclient.Client {
	admin := *c
	admin.as = rest.ImpersonationConfig{}
	return &testclient.Client{
		Admin: admin.viewed(false), Viewed: c.viewed(false), Manager: fieldManager, Namespace: c.namespace, Kinds: &c.kinds,
		Timeout: c.timeout, Why: c.why,
	}
}

// why is what the control plane says about an object.
func (w *world) why(ctx context.Context, kind, namespace, name string) ([]string, error) {
	path := "/why/" + url.PathEscape(namespace) + "/" + url.PathEscape(kind) + "/" + url.PathEscape(name)
	answer, err := w.ask(ctx, testlink.QuickLimit, http.MethodGet, path)
	return answer.Why, err
}
