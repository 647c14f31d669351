package scheduler

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

// owners finds the pods that belong together with a pod: those of the same services and of the same owner. A lister is
// nil where its kind is not served.
type owners struct {
	services    corelisters.ServiceLister
	controllers corelisters.ReplicationControllerLister
	replicaSets appslisters.ReplicaSetLister
	statefuls   appslisters.StatefulSetLister
}

func newOwners(cfg Config) *owners {
	o := &owners{}
	if cfg.serves(services) {
		o.services = cfg.Informers.Core().V1().Services().Lister()
	}
	if cfg.serves(replicationControllers) {
		o.controllers = cfg.Informers.Core().V1().ReplicationControllers().Lister()
	}
	if cfg.serves(replicaSets) {
		o.replicaSets = cfg.Informers.Apps().V1().ReplicaSets().Lister()
	}
	if cfg.serves(statefulSets) {
		o.statefuls = cfg.Informers.Apps().V1().StatefulSets().Lister()
	}
	return o
}

// selector joins the selectors of the pod's services and owner; empty if it has neither. Something not seen yet counts
// as absent: spreading is a preference.
func (o *owners) selector(pod *corev1.Pod) labels.Selector {
	merged := labels.Set{}
	for _, s := range o.servicesIn(pod.Namespace) {
		if len(s.Spec.Selector) > 0 && covers(pod.Labels, s.Spec.Selector) {
			merged = labels.Merge(merged, s.Spec.Selector)
		}
	}
	selector := merged.AsSelector()
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		if requirements, ok := o.ownSelector(pod.Namespace, owner).Requirements(); ok {
			selector = selector.Add(requirements...)
		}
	}
	return selector
}

func (o *owners) servicesIn(namespace string) []*corev1.Service {
	if o.services == nil {
		return nil
	}
	list, err := o.services.Services(namespace).List(labels.Everything())
	if err != nil {
		return nil // a cache cannot fail to list everything
	}
	return list
}

// covers is Matches for a plain map, without building a selector for each service and pod.
func covers(have, want map[string]string) bool {
	for key, value := range want {
		if v, ok := have[key]; !ok || v != value {
			return false
		}
	}
	return true
}

func (o *owners) ownSelector(namespace string, owner *metav1.OwnerReference) labels.Selector {
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
