package endpoints

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/endpointslice/util"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/serviceendpoints"
)

var services = reconcile.Services.By(reconcile.BySelector)

// kubernetesService has its Endpoints from the controller of that name, whether it is there or not.
var kubernetesService = reconcile.Key{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}

// New keeps the Endpoints of Services.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:  controllerName,
		Reads: []reconcile.Read{services, reconcile.LabelledPods, reconcile.Endpoints},
		Run:   run,
	}
}

// controller is one term of the controller.
type controller struct {
	env      *reconcile.Env
	services reconcile.Cache[*corev1.Service]
	pods     reconcile.Cache[*corev1.Pod]
	stored   reconcile.Cache[*corev1.Endpoints]
	triggers *util.TriggerTimeTracker
	written  versions
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{
		env: env, services: services.From(env), pods: reconcile.LabelledPods.From(env), stored: reconcile.Endpoints.From(env),
		triggers: util.NewTriggerTimeTracker(), written: versions{byKey: map[reconcile.Key]version{}},
	}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "endpoints",
		Queue:     "endpoint",
		Reconcile: c.reconcile,
		Rests:     reconcile.RestsEach,
		Sources: []reconcile.Source{
			reconcile.Self(c.services), reconcile.Changes(c.pods, serviceendpoints.PodChanged(c.services, env.Logger)),
			reconcile.Changes(c.stored, c.endpointsChanged),
		},
		Feeds: []reconcile.Feed{c.leftOver},
		Env:   env,
	})
}

// endpointsChanged maps Endpoints that somebody else changed to their Service, if that is there.
func (c *controller) endpointsChanged(before, after metav1.Object) []reconcile.Key {
	o := after
	if o == nil {
		o = before
	}
	key := reconcile.KeyOf(o)
	if after != nil && c.written.isLatest(key, after.GetResourceVersion()) {
		return nil
	}
	if service, err := c.services.Get(key); err != nil || !keeps(service) {
		return nil
	}
	return []reconcile.Key{key}
}

// leftOver adds the Endpoints whose Service went while nobody looked. Those that serve an
// election never had one.
func (c *controller) leftOver(_ context.Context, add func(reconcile.Key)) {
	all, err := c.stored.List(metav1.NamespaceAll, nil)
	if err != nil {
		c.env.Logger.Error("left-over Endpoints not found", "err", err)
	}
	for _, e := range all {
		key := reconcile.KeyOf(e)
		if _, election := e.Annotations[resourcelock.LeaderElectionRecordAnnotationKey]; election {
			continue
		}
		if _, err := c.services.Get(key); apierrors.IsNotFound(err) {
			add(key)
		}
	}
}

// keeps says whether the Endpoints of a Service are made here.
func keeps(service *corev1.Service) bool {
	return service.Spec.Type != corev1.ServiceTypeExternalName && service.Spec.Selector != nil
}

// reconcile reads one Service, its pods and Endpoints, plans and writes.
func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	service, err := c.services.Get(key)
	if apierrors.IsNotFound(err) {
		c.triggers.DeleteService(key.Namespace, key.Name)
		c.written.forget(key)
		return 0, c.remove(ctx, key)
	}
	if err != nil || !keeps(service) {
		return 0, err
	}
	current, err := c.stored.Get(key)
	if apierrors.IsNotFound(err) {
		current, err = nil, nil
	}
	if err != nil {
		return 0, err
	}
	if current != nil && c.written.isOutdated(key, current.ResourceVersion) {
		return 0, reconcile.ErrStale
	}
	pods, err := c.pods.List(key.Namespace, labels.SelectorFromValidatedSet(service.Spec.Selector))
	if err != nil {
		return 0, err
	}
	trigger := c.triggers.ComputeEndpointLastChangeTriggerTime(key.Namespace, service, pods)
	next := plan(service, pods, current, trigger)
	if next == nil {
		return 0, nil
	}
	return 0, c.write(reconcile.WithCause(ctx, service), key, current, next)
}

// write creates or updates.
func (c *controller) write(ctx context.Context, key reconcile.Key, current, next *corev1.Endpoints) error {
	client := c.env.Client.CoreV1().Endpoints(key.Namespace)
	if current == nil {
		created, err := client.Create(ctx, next, metav1.CreateOptions{})
		switch {
		case apierrors.IsAlreadyExists(err):
			return reconcile.ErrStale
		case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
			return nil // it would be refused again and again
		case err != nil:
			c.env.Events.Eventf(next, corev1.EventTypeWarning, "FailedToCreateEndpoint",
				"Failed to create endpoint for service %v: %v", key, err)
			return fmt.Errorf("create Endpoints: %w", err)
		}
		c.written.set(key, version{is: created.ResourceVersion})
		return nil
	}
	updated, err := client.Update(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) { // else the cache lags
			c.env.Events.Eventf(next, corev1.EventTypeWarning, "FailedToUpdateEndpoint", "Failed to update endpoint %v: %v", key, err)
		}
		return fmt.Errorf("update Endpoints: %w", err)
	}
	c.written.set(key, version{was: current.ResourceVersion, is: updated.ResourceVersion})
	return nil
}

// remove deletes the Endpoints of a Service that is gone. It asks the API also when the
// cache has none: the cache may not show yet what was just made.
func (c *controller) remove(ctx context.Context, key reconcile.Key) error {
	if key == kubernetesService {
		return nil
	}
	var opts metav1.DeleteOptions
	if current, err := c.stored.Get(key); err == nil {
		ctx = reconcile.WithCause(ctx, current)
		opts.Preconditions = &metav1.Preconditions{UID: &current.UID}
	}
	err := c.env.Client.CoreV1().Endpoints(key.Namespace).Delete(ctx, key.Name, opts)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete Endpoints: %w", err)
	}
	return nil
}
