package endpointslice

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	upstream "k8s.io/endpointslice"
	"k8s.io/endpointslice/util"
	"k8s.io/klog/v2"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/serviceendpoints"
)

const (
	// controllerName marks the slices that this controller owns; kube-proxy and
	// others look for upstream's name.
	controllerName = "endpointslice-controller.k8s.io"
	// maxEndpointsPerSlice is upstream's default.
	maxEndpointsPerSlice = 100
)

var (
	services     = reconcile.Services.By(reconcile.BySelector)
	storedSlices = reconcile.EndpointSlices.By(serviceendpoints.ByService)
)

// New keeps the slices of Services.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:    "endpoint-slice-controller",
		Account: "endpointslice-controller",
		Reads:   []reconcile.Read{services, reconcile.LabelledPods, reconcile.Nodes, storedSlices},
		Run:     run,
	}
}

// controller is one term of the controller.
type controller struct {
	env      *reconcile.Env
	services reconcile.Cache[*corev1.Service]
	pods     reconcile.Cache[*corev1.Pod]
	nodes    reconcile.Cache[*corev1.Node]
	slices   *serviceendpoints.Slices
	triggers *util.TriggerTimeTracker
	waiting  waiting
}

func run(ctx context.Context, env *reconcile.Env) error {
	stored := storedSlices.From(env)
	c := &controller{
		env: env, services: services.From(env), pods: reconcile.LabelledPods.From(env), nodes: reconcile.Nodes.From(env),
		slices:   serviceendpoints.NewSlices(controllerName, stored),
		triggers: util.NewTriggerTimeTracker(),
		waiting:  waiting{byNode: map[string]map[reconcile.Key]bool{}},
	}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "endpointslice",
		Queue:     "endpoint_slice",
		Reconcile: c.reconcile,
		Rests:     reconcile.RestsEach,
		Sources: []reconcile.Source{
			reconcile.Self(c.services), reconcile.Changes(c.pods, serviceendpoints.PodChanged(c.services, env.Logger)),
			reconcile.Changes(c.nodes, c.nodeChanged), reconcile.Changes(stored, c.slices.Changed),
		},
		Env: env,
	})
}

// nodeChanged maps a new node to the Services that left out a pod for want of it.
func (c *controller) nodeChanged(before, after metav1.Object) []reconcile.Key {
	if before != nil {
		return nil
	}
	return c.waiting.take(after.GetName())
}

// reconcile reads one Service, its pods and slices, and lets upstream's
// reconciler plan and act.
func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	service, err := c.services.Get(key)
	if apierrors.IsNotFound(err) {
		c.triggers.DeleteService(key.Namespace, key.Name)
		c.slices.Tracker.DeleteService(key.Namespace, key.Name)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName || service.Spec.Selector == nil {
		return 0, nil
	}
	pods, err := c.pods.List(key.Namespace, labels.SelectorFromValidatedSet(service.Spec.Selector))
	if err != nil {
		return 0, err
	}
	slices, err := c.slices.Of(key)
	if err != nil {
		return 0, err
	}
	if c.slices.Tracker.StaleSlices(service, slices) {
		return 0, reconcile.ErrStale
	}
	pods = c.withNode(key, service, pods)
	trigger := c.triggers.ComputeEndpointLastChangeTriggerTime(key.Namespace, service, pods)
	err = c.reconciler(reconcile.WithCause(ctx, service)).Reconcile(klog.FromContext(ctx), service, pods, slices, trigger)
	if err != nil && ctx.Err() == nil {
		c.env.Events.Eventf(service, corev1.EventTypeWarning, "FailedToUpdateEndpointSlices",
			"Error updating Endpoint Slices for Service %s/%s: %v", service.Namespace, service.Name, err)
	}
	return 0, err
}

// withNode leaves out pods whose node does not exist; the Service waits for it.
func (c *controller) withNode(key reconcile.Key, service *corev1.Service, pods []*corev1.Pod) []*corev1.Pod {
	if service.Spec.PublishNotReadyAddresses {
		return pods
	}
	known := pods[:0:0]
	for _, p := range pods {
		if p.Spec.NodeName == "" {
			continue
		}
		if _, err := c.nodes.Get(reconcile.Key{Name: p.Spec.NodeName}); err != nil {
			c.waiting.add(p.Spec.NodeName, key)
			continue
		}
		known = append(known, p)
	}
	return known
}

// reconciler builds upstream's reconciler for one call: it takes no context, so
// its client carries ours. It is a struct of pointers; the trackers persist.
func (c *controller) reconciler(ctx context.Context) *upstream.Reconciler {
	return upstream.NewReconciler(bind(ctx, c.env.Client), corelisters.NewNodeLister(c.nodes.Indexer()),
		maxEndpointsPerSlice, c.slices.Tracker, nil, c.env.Events, controllerName,
		upstream.WithPreferSameTrafficDistributionEnabled(true))
}

// waiting remembers which Services wait for which node. It is bounded by pods:
// an entry exists only for a pod on a missing node.
type waiting struct {
	mu     sync.Mutex
	byNode map[string]map[reconcile.Key]bool
}

func (w *waiting) add(node string, key reconcile.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byNode[node] == nil {
		w.byNode[node] = map[reconcile.Key]bool{}
	}
	w.byNode[node][key] = true
}

func (w *waiting) take(node string) []reconcile.Key {
	w.mu.Lock()
	defer w.mu.Unlock()
	var keys []reconcile.Key
	for key := range w.byNode[node] {
		keys = append(keys, key)
	}
	delete(w.byNode, node)
	return keys
}
