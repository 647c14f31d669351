package setpointtest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/internal/testclient"
)

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
