package setpointtest

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

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
