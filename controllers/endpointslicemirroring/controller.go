package endpointslicemirroring

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/serviceendpoints"
)

// managedBy marks the slices that this controller owns; it is upstream's name.
const managedBy = "endpointslicemirroring-controller.k8s.io"

var storedSlices = reconcile.EndpointSlices.By(serviceendpoints.ByService)

// New mirrors Endpoints.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:    "endpoint-slice-mirroring-controller",
		Account: "endpointslicemirroring-controller",
		Reads:   []reconcile.Read{reconcile.Endpoints, reconcile.Services, storedSlices},
		Run:     run,
	}
}

// controller is one term of the controller.
type controller struct {
	env       *reconcile.Env
	endpoints reconcile.Cache[*corev1.Endpoints]
	services  reconcile.Cache[*corev1.Service]
	slices    *serviceendpoints.Slices
}

func run(ctx context.Context, env *reconcile.Env) error {
	stored := storedSlices.From(env)
	c := &controller{
		env: env, endpoints: reconcile.Endpoints.From(env), services: reconcile.Services.From(env),
		slices: serviceendpoints.NewSlices(managedBy, stored),
	}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "endpointslicemirroring",
		Queue:     "endpoint_slice_mirroring",
		Reconcile: c.reconcile,
		Rests:     reconcile.RestsEach,
		Sources: []reconcile.Source{
			reconcile.Changes(c.services, serviceChanged), reconcile.Changes(c.endpoints, c.endpointsChanged),
			reconcile.Changes(stored, c.slices.Changed),
		},
		Env: env,
	})
}

// serviceChanged maps a Service to itself when it comes or goes without a selector, or when
// it gets or loses one.
func serviceChanged(before, after metav1.Object) []reconcile.Key {
	was, _ := before.(*corev1.Service)
	is, _ := after.(*corev1.Service)
	manual := func(s *corev1.Service) bool { return s != nil && s.Spec.Selector == nil }
	if manual(was) == manual(is) {
		return nil
	}
	if is == nil {
		is = was
	}
	return []reconcile.Key{reconcile.KeyOf(is)}
}

// endpointsChanged maps Endpoints to themselves unless they neither were nor are mirrored.
// Most belong to Services with a selector and need no pass: the Service's own change says
// when that ends.
func (c *controller) endpointsChanged(before, after metav1.Object) []reconcile.Key {
	was, _ := before.(*corev1.Endpoints)
	is, _ := after.(*corev1.Endpoints)
	if !isMirrored(was) && !isMirrored(is) {
		return nil
	}
	if is == nil {
		is = was
	}
	key := reconcile.KeyOf(is)
	if service, err := c.services.Get(key); err == nil && service.Spec.Selector != nil {
		return nil
	}
	return []reconcile.Key{key}
}

// isMirrored says whether Endpoints want slices, if their Service has no selector.
func isMirrored(e *corev1.Endpoints) bool {
	if e == nil || e.Labels[discoveryv1.LabelSkipMirror] == "true" {
		return false
	}
	_, election := e.Annotations[resourcelock.LeaderElectionRecordAnnotationKey]
	return !election
}

// reconcile reads Endpoints, their Service and its slices, plans and writes.
func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	endpoints, err := c.endpoints.Get(key)
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, err
	}
	service, serviceErr := c.services.Get(key)
	if serviceErr != nil && !apierrors.IsNotFound(serviceErr) {
		return 0, serviceErr
	}
	have, sliceErr := c.slices.Of(key)
	if sliceErr != nil {
		return 0, sliceErr
	}
	if err != nil || serviceErr != nil || service.Spec.Selector != nil || !isMirrored(endpoints) {
		c.slices.Tracker.DeleteService(key.Namespace, key.Name)
		return 0, c.removeAll(ctx, have)
	}
	if c.slices.Tracker.StaleSlices(service, have) {
		return 0, reconcile.ErrStale
	}
	want, out := partsOf(endpoints)
	c.tell(endpoints, out)
	return 0, c.act(reconcile.WithCause(ctx, endpoints), endpoints, plan(endpoints, have, want))
}

// tell says on the Endpoints what is not mirrored.
func (c *controller) tell(endpoints *corev1.Endpoints, out leftOut) {
	if out.invalid > 0 {
		c.env.Events.Eventf(endpoints, corev1.EventTypeWarning, "InvalidIPAddress",
			"Skipped %d invalid IP addresses when mirroring to EndpointSlices", out.invalid)
	}
	if out.tooMany > 0 {
		c.env.Events.Eventf(endpoints, corev1.EventTypeWarning, "TooManyAddressesToMirror",
			"A max of %d addresses can be mirrored to EndpointSlices per Endpoints subset. %d addresses were skipped",
			addressesMax, out.tooMany+out.invalid)
	}
}

// act creates, updates and deletes in this order, so that no address is missing in between.
func (c *controller) act(ctx context.Context, endpoints *corev1.Endpoints, todo changes) error {
	client := c.env.Client.DiscoveryV1().EndpointSlices(endpoints.Namespace)
	for _, slice := range todo.create {
		if endpoints.DeletionTimestamp != nil {
			break
		}
		created, err := client.Create(ctx, slice, metav1.CreateOptions{})
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil // it would be refused again and again
		}
		if err != nil {
			return fmt.Errorf("create EndpointSlice: %w", err)
		}
		c.slices.Tracker.Update(created)
	}
	for _, slice := range todo.update {
		updated, err := client.Update(ctx, slice, metav1.UpdateOptions{})
		if err != nil {
			return fmt.Errorf("update EndpointSlice %s: %w", slice.Name, err)
		}
		c.slices.Tracker.Update(updated)
	}
	for _, slice := range todo.remove {
		if err := c.remove(ctx, slice); err != nil {
			return err
		}
		c.slices.Tracker.ExpectDeletion(slice)
	}
	return nil
}

func (c *controller) removeAll(ctx context.Context, slices []*discoveryv1.EndpointSlice) error {
	var errs []error
	for _, slice := range slices {
		errs = append(errs, c.remove(reconcile.WithCause(ctx, slice), slice))
	}
	return errors.Join(errs...)
}

func (c *controller) remove(ctx context.Context, slice *discoveryv1.EndpointSlice) error {
	err := c.env.Client.DiscoveryV1().EndpointSlices(slice.Namespace).Delete(ctx, slice.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &slice.UID},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete EndpointSlice %s: %w", slice.Name, err)
	}
	return nil
}
