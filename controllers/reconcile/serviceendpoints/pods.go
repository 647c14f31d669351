package serviceendpoints

import (
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/endpointslice/util"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// PodChanged maps a pod to the Services that its change matters to. The cache is declared By(reconcile.BySelector).
func PodChanged(services reconcile.Cache[*corev1.Service], log *slog.Logger) func(before, after metav1.Object) []reconcile.Key {
	return func(before, after metav1.Object) []reconcile.Key {
		projected := projection(before, after)
		if projected == nil {
			return nil
		}
		near := nearServices{services.Indexer(), projected}
		names, err := util.GetServicesToUpdate(near, projected)
		if err != nil {
			log.Error("services of a pod not found", "err", err)
		}
		var keys []reconcile.Key
		for name := range names {
			if key, err := cache.ParseObjectName(name); err == nil {
				keys = append(keys, key)
			}
		}
		return keys
	}
}

// nearServices lists to upstream's code those Services only that select the pod as it was or as it is.
type nearServices struct {
	services cache.Indexer
	pod      *util.PodProjectionKey
}

// List is part of corelisters.ServiceLister.
func (n nearServices) List(labels.Selector) ([]*corev1.Service, error) {
	found, err := reconcile.ServicesFor(n.services, n.pod.Namespace, n.pod.Labels)
	if err != nil || n.pod.OldLabels == nil {
		return found, err
	}
	before, err := reconcile.ServicesFor(n.services, n.pod.Namespace, n.pod.OldLabels)
	return append(found, before...), err
}

// Services is part of corelisters.ServiceLister.
func (n nearServices) Services(string) corelisters.ServiceNamespaceLister { return n }

// Get is part of corelisters.ServiceNamespaceLister.
func (n nearServices) Get(name string) (*corev1.Service, error) {
	return corelisters.NewServiceLister(n.services).Services(n.pod.Namespace).Get(name)
}

// projection avoids an interface that holds a nil interface, which upstream takes for an object.
func projection(before, after metav1.Object) *util.PodProjectionKey {
	switch {
	case before == nil:
		return util.GetPodUpdateProjectionKey(nil, after)
	case after == nil:
		return util.GetPodUpdateProjectionKey(nil, before)
	default:
		return util.GetPodUpdateProjectionKey(before, after)
	}
}
