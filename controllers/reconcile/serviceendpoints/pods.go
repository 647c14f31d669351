package serviceendpoints

import (
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/endpointslice/util"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// PodChanged maps a pod to the Services that its change matters to.
func PodChanged(services reconcile.Cache[*corev1.Service], log *slog.Logger) func(before, after metav1.Object) []reconcile.Key {
	lister := corelisters.NewServiceLister(services.Indexer())
	return func(before, after metav1.Object) []reconcile.Key {
		names, err := util.GetServicesToUpdate(lister, projection(before, after))
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
