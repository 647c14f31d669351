package owners

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// The kinds that are read, if they are served.
var (
	Services               = corev1.SchemeGroupVersion.WithResource("services")
	ReplicationControllers = corev1.SchemeGroupVersion.WithResource("replicationcontrollers")
	ReplicaSets            = appsv1.SchemeGroupVersion.WithResource("replicasets")
	StatefulSets           = appsv1.SchemeGroupVersion.WithResource("statefulsets")
)

// Owners finds the pods that belong together with a pod: those of the same services and of the same owner. A lister is
// nil where its kind is not served.
type Owners struct {
	services    toolscache.Indexer // has reconcile.BySelector
	controllers corelisters.ReplicationControllerLister
	replicaSets appslisters.ReplicaSetLister
	statefuls   appslisters.StatefulSetLister
}

// New reads the informers of what is served.
func New(informers informers.SharedInformerFactory, serves func(schema.GroupVersionResource) bool) *Owners {
	o := &Owners{}
	if serves(Services) {
		o.services = indexed(informers.Core().V1().Services().Informer())
	}
	if serves(ReplicationControllers) {
		o.controllers = informers.Core().V1().ReplicationControllers().Lister()
	}
	if serves(ReplicaSets) {
		o.replicaSets = informers.Apps().V1().ReplicaSets().Lister()
	}
	if serves(StatefulSets) {
		o.statefuls = informers.Apps().V1().StatefulSets().Lister()
	}
	return o
}

// Selector joins the selectors of the pod's services and owner; empty if it has neither. Something not seen yet counts
// as absent: spreading is a preference.
func (o *Owners) Selector(pod *corev1.Pod) labels.Selector {
	merged := labels.Set{}
	for _, s := range o.servicesFor(pod) {
		merged = labels.Merge(merged, s.Spec.Selector)
	}
	selector := merged.AsSelector()
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		if requirements, ok := o.ownSelector(pod.Namespace, owner).Requirements(); ok {
			selector = selector.Add(requirements...)
		}
	}
	return selector
}

// indexed gives the informer's index with reconcile.BySelector. It cannot be added to an informer that has stopped, which nobody
// asks any more.
func indexed(services toolscache.SharedIndexInformer) toolscache.Indexer {
	_ = reconcile.EnsureIndex(services, reconcile.BySelector.Name, reconcile.BySelector.Keys)
	return services.GetIndexer()
}

// servicesFor gives the services that select the pod by any label.
func (o *Owners) servicesFor(pod *corev1.Pod) []*corev1.Service {
	if o.services == nil {
		return nil
	}
	found, err := reconcile.ServicesFor(o.services, pod.Namespace, pod.Labels)
	if err != nil {
		return nil // a stopped informer's
	}
	return found
}

func (o *Owners) ownSelector(namespace string, owner *metav1.OwnerReference) labels.Selector {
	switch {
	case owner.Kind == "ReplicaSet" && o.replicaSets != nil:
		if rs, err := o.replicaSets.ReplicaSets(namespace).Get(owner.Name); err == nil {
			return plugin.ParseSelector(rs.Spec.Selector)
		}
	case owner.Kind == "StatefulSet" && o.statefuls != nil:
		if sts, err := o.statefuls.StatefulSets(namespace).Get(owner.Name); err == nil {
			return plugin.ParseSelector(sts.Spec.Selector)
		}
	case owner.Kind == "ReplicationController" && o.controllers != nil:
		if rc, err := o.controllers.ReplicationControllers(namespace).Get(owner.Name); err == nil {
			return labels.SelectorFromSet(rc.Spec.Selector)
		}
	}
	return labels.Everything()
}
