package endpointslice

import (
	"context"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	upstream "k8s.io/endpointslice"
	"k8s.io/endpointslice/util"
	"k8s.io/klog/v2"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

const (
	// controllerName marks the slices that this controller owns; kube-proxy and
	// others look for upstream's name.
	controllerName = "endpointslice-controller.k8s.io"
	// maxEndpointsPerSlice is upstream's default.
	maxEndpointsPerSlice = 100
)

// Config is what the controller needs for one term.
type Config struct {
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory
	Events    record.EventRecorder
	Logger    *slog.Logger
}

// controller is one term of the controller.
type controller struct {
	cfg      Config
	tracker  *util.EndpointSliceTracker
	triggers *util.TriggerTimeTracker
	waiting  waiting
}

// Warm creates the informers that the controller reads.
func Warm(f informers.SharedInformerFactory) error {
	f.Core().V1().Services().Informer()
	f.Core().V1().Pods().Informer()
	f.Core().V1().Nodes().Informer()
	f.Discovery().V1().EndpointSlices().Informer()
	return nil
}

// Run reconciles Services until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	c := &controller{
		cfg:      cfg,
		tracker:  util.NewEndpointSliceTracker(),
		triggers: util.NewTriggerTimeTracker(),
		waiting:  waiting{byNode: map[string]map[reconcile.Key]bool{}},
	}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "endpointslice",
		Reconcile: c.reconcile,
		Sources: []reconcile.Source{
			reconcile.Self(cfg.Informers.Core().V1().Services().Informer()),
			{Informer: cfg.Informers.Core().V1().Pods().Informer(), Map: c.podChanged},
			{Informer: cfg.Informers.Core().V1().Nodes().Informer(), Map: c.nodeChanged},
			{Informer: cfg.Informers.Discovery().V1().EndpointSlices().Informer(), Map: c.sliceChanged},
		},
		Logger: cfg.Logger,
	})
}

// podChanged maps a pod to the Services that its change matters to.
func (c *controller) podChanged(before, after metav1.Object) []reconcile.Key {
	var change *util.PodProjectionKey
	switch {
	case before == nil:
		change = util.GetPodUpdateProjectionKey(nil, after)
	case after == nil:
		change = util.GetPodUpdateProjectionKey(nil, before)
	default:
		change = util.GetPodUpdateProjectionKey(before, after)
	}
	names, err := util.GetServicesToUpdate(c.cfg.Informers.Core().V1().Services().Lister(), change)
	if err != nil {
		c.logger().Error("services of a pod not found", "error", err)
	}
	var keys []reconcile.Key
	for name := range names {
		if key, err := cache.ParseObjectName(name); err == nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// nodeChanged maps a new node to the Services that left out a pod for want of it.
func (c *controller) nodeChanged(before, after metav1.Object) []reconcile.Key {
	if before != nil {
		return nil
	}
	return c.waiting.take(after.GetName())
}

// sliceChanged maps a slice that someone else changed to its Service.
func (c *controller) sliceChanged(before, after metav1.Object) []reconcile.Key {
	slice, _ := after.(*discoveryv1.EndpointSlice)
	if slice == nil {
		return c.sliceGone(before)
	}
	if slice.Labels[discoveryv1.LabelManagedBy] == controllerName && !c.tracker.ShouldSync(slice) {
		return nil
	}
	var keys []reconcile.Key
	for _, o := range []metav1.Object{before, after} {
		if o != nil && o.GetLabels()[discoveryv1.LabelManagedBy] == controllerName {
			keys = append(keys, serviceOf(o))
		}
	}
	return keys
}

func (c *controller) sliceGone(before metav1.Object) []reconcile.Key {
	slice, ok := before.(*discoveryv1.EndpointSlice)
	if !ok || slice.Labels[discoveryv1.LabelManagedBy] != controllerName {
		return nil
	}
	if c.tracker.Has(slice) && c.tracker.HandleDeletion(slice) {
		return nil
	}
	return []reconcile.Key{serviceOf(slice)}
}

func serviceOf(slice metav1.Object) reconcile.Key {
	return reconcile.Key{Namespace: slice.GetNamespace(), Name: slice.GetLabels()[discoveryv1.LabelServiceName]}
}

// reconcile reads one Service, its pods and slices, and lets upstream's
// reconciler plan and act.
func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	service, err := c.cfg.Informers.Core().V1().Services().Lister().Services(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.triggers.DeleteService(key.Namespace, key.Name)
		c.tracker.DeleteService(key.Namespace, key.Name)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if service.Spec.Type == corev1.ServiceTypeExternalName || service.Spec.Selector == nil {
		return 0, nil
	}
	pods, err := c.cfg.Informers.Core().V1().Pods().Lister().Pods(key.Namespace).List(labels.SelectorFromValidatedSet(service.Spec.Selector))
	if err != nil {
		return 0, err
	}
	slices, err := c.slices(key)
	if err != nil {
		return 0, err
	}
	if c.tracker.StaleSlices(service, slices) {
		return 0, reconcile.ErrStale
	}
	pods = c.withNode(key, service, pods)
	trigger := c.triggers.ComputeEndpointLastChangeTriggerTime(key.Namespace, service, pods)
	return 0, c.reconciler(reconcile.WithCause(ctx, service)).Reconcile(klog.FromContext(ctx), service, pods, slices, trigger)
}

// slices lists the Service's own slices that are not being deleted.
func (c *controller) slices(key reconcile.Key) ([]*discoveryv1.EndpointSlice, error) {
	selector := labels.Set{discoveryv1.LabelServiceName: key.Name, discoveryv1.LabelManagedBy: controllerName}.AsSelectorPreValidated()
	all, err := c.cfg.Informers.Discovery().V1().EndpointSlices().Lister().EndpointSlices(key.Namespace).List(selector)
	if err != nil {
		return nil, err
	}
	live := all[:0:0]
	for _, s := range all {
		if s.DeletionTimestamp == nil {
			live = append(live, s)
		}
	}
	return live, nil
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
		if _, err := c.cfg.Informers.Core().V1().Nodes().Lister().Get(p.Spec.NodeName); err != nil {
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
	return upstream.NewReconciler(bind(ctx, c.cfg.Client), c.cfg.Informers.Core().V1().Nodes().Lister(),
		maxEndpointsPerSlice, c.tracker, nil, c.cfg.Events, controllerName,
		upstream.WithPreferSameTrafficDistributionEnabled(true))
}

func (c *controller) logger() *slog.Logger {
	if c.cfg.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.cfg.Logger
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
