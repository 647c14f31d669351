package crdstatus

import (
	"context"
	"strconv"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// Resource is where definitions are.
var Resource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// fieldManager is the component that writes the status of definitions upstream.
const fieldManager = "kube-apiserver"

// New judges definitions.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:  "crd-controller",
		Reads: []reconcile.Read{reconcile.CustomResourceDefinitions},
		Run:   run,
		OfAPI: true,
	}
}

// controller is one term. Its one worker owns written.
type controller struct {
	env         *reconcile.Env
	definitions reconcile.Cache[*definition]
	// written are definitions as this term last wrote them, until the cache has them.
	written map[string]*definition
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{env: env, definitions: reconcile.CustomResourceDefinitions.From(env), written: map[string]*definition{}}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "crd",
		Queue:     "crd_naming_condition_controller",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{reconcile.Changes(c.definitions, c.affected)},
		Workers:   1, // two could give one name away twice
		Env:       env,
	})
}

type definition = apiextensionsv1.CustomResourceDefinition

// affected is the definition itself, and those that may wait for a name that it gave up.
func (c *controller) affected(before, after metav1.Object) []reconcile.Key {
	was, _ := before.(*definition)
	is, _ := after.(*definition)
	keys := []reconcile.Key{}
	if is != nil {
		keys = append(keys, reconcile.KeyOf(is))
	}
	if was == nil || is != nil && apiequality.Semantic.DeepEqual(was.Status.AcceptedNames, is.Status.AcceptedNames) {
		return keys
	}
	all, err := c.definitions.List("", nil)
	if err != nil {
		return keys
	}
	for _, d := range all {
		if d.Spec.Group == was.Spec.Group && d.Name != was.Name && !apihelpers.IsCRDConditionTrue(d, apiextensionsv1.NamesAccepted) {
			keys = append(keys, reconcile.KeyOf(d))
		}
	}
	return keys
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	d := c.newest(key.Name)
	if d == nil {
		delete(c.written, key.Name)
		return 0, nil
	}
	ctx = reconcile.WithCause(ctx, d)
	next := d.DeepCopy()
	next.Status = plan(d, c.others(d))
	done, again, err := false, time.Duration(0), error(nil)
	if d.DeletionTimestamp != nil && apihelpers.CRDHasFinalizer(d, apiextensionsv1.CustomResourceCleanupFinalizer) {
		done, again, err = c.cleanUp(ctx, next)
	}
	if !apiequality.Semantic.DeepEqual(d.Status, next.Status) {
		var writeErr error
		if d, writeErr = c.writeStatus(ctx, next); writeErr != nil {
			return again, ignoreGone(writeErr)
		}
	}
	if done {
		return 0, c.release(ctx, d.DeepCopy())
	}
	return again, err
}

// writeStatus writes the status of a definition, and remembers it until the cache has it.
func (c *controller) writeStatus(ctx context.Context, d *definition) (*definition, error) {
	definitions := c.env.Extensions.ApiextensionsV1().CustomResourceDefinitions()
	updated, err := definitions.UpdateStatus(ctx, d, metav1.UpdateOptions{FieldManager: fieldManager})
	if err == nil {
		c.written[d.Name] = updated
	}
	return updated, err
}

// release takes the finalizer off: the definition goes, unless others hold it.
func (c *controller) release(ctx context.Context, d *definition) error {
	apihelpers.CRDRemoveFinalizer(d, apiextensionsv1.CustomResourceCleanupFinalizer)
	_, err := c.env.Extensions.ApiextensionsV1().
		CustomResourceDefinitions().
		Update(ctx, d, metav1.UpdateOptions{FieldManager: fieldManager})
	return ignoreGone(err)
}

// ignoreGone: whoever changed or deleted the definition meanwhile has caused an event.
func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// newest returns a definition as the cache has it, or as it was written later; nil if
// there is none.
func (c *controller) newest(name string) *definition {
	cached, err := c.definitions.Get(reconcile.Key{Name: name})
	if err != nil {
		return nil
	}
	if written := c.written[name]; written != nil && written.UID == cached.UID && revision(written) > revision(cached) {
		return written
	}
	delete(c.written, name)
	return cached
}

// others are the other definitions of the same group.
func (c *controller) others(d *definition) []*definition {
	known, err := c.definitions.List("", nil)
	if err != nil {
		return nil
	}
	var all []*definition
	for _, other := range known {
		if other.Spec.Group == d.Spec.Group && other.Name != d.Name {
			if newest := c.newest(other.Name); newest != nil {
				all = append(all, newest)
			}
		}
	}
	return all
}

// revision orders what the API server wrote; it is a number by its promise.
func revision(d *definition) uint64 {
	n, _ := strconv.ParseUint(d.ResourceVersion, 10, 64)
	return n
}
