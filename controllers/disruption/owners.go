package disruption

import (
	"context"

	"fmt"
	"math"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// owners finds what says how many pods there should be.
type owners struct {
	deployments            reconcile.Cache[*appsv1.Deployment]
	replicaSets            reconcile.Cache[*appsv1.ReplicaSet]
	statefulSets           reconcile.Cache[*appsv1.StatefulSet]
	replicationControllers reconcile.Cache[*corev1.ReplicationController]
	scales                 scales
}

// scaled is one that says how many pods there should be.
type scaled struct {
	uid      types.UID
	replicas int32
}

// scale is what those of some pods want together.
type scale struct {
	pods int32
	// unmanaged are the names of pods that nobody controls.
	unmanaged []string
}

// scaleOf adds up what the controllers of pods want, each once.
func (o *owners) scaleOf(ctx context.Context, pods []*corev1.Pod) (scale, error) {
	var s scale
	asked, wanted := map[types.UID]bool{}, map[types.UID]int32{}
	for _, pod := range pods {
		ref := metav1.GetControllerOfNoCopy(pod)
		if ref == nil {
			s.unmanaged = append(s.unmanaged, pod.Name)
			continue
		}
		if asked[ref.UID] {
			continue
		}
		asked[ref.UID] = true
		found, err := o.find(ctx, ref, pod.Namespace)
		if err != nil {
			return scale{}, err
		}
		if found == nil {
			return scale{}, fmt.Errorf("found no controllers for pod %q", pod.Name)
		}
		wanted[found.uid] = found.replicas
	}
	slices.Sort(s.unmanaged)
	total := int64(0)
	for _, n := range wanted {
		total += int64(n)
	}
	s.pods = int32(min(total, math.MaxInt32))
	return s, nil
}

// find is the controller of a pod, or that controller's own one, in upstream's order; nil if it is not there, or another of its name.
func (o *owners) find(ctx context.Context, ref *metav1.OwnerReference, namespace string) (*scaled, error) {
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return nil, err
	}
	var found *scaled
	switch key := (reconcile.Key{Namespace: namespace, Name: ref.Name}); {
	case ref.Kind == "ReplicationController" && gv.Group == "":
		found, err = lookUp(o.replicationControllers, key, ref.UID)
	case ref.Kind == "ReplicaSet" && isApps(gv):
		found, err = o.replicaSet(key, ref.UID)
	case ref.Kind == "StatefulSet" && gv.Group == "apps":
		found, err = lookUp(o.statefulSets, key, ref.UID)
	}
	if found != nil || err != nil {
		return found, err
	}
	return o.scales.find(ctx, gv.WithKind(ref.Kind), namespace, ref)
}

func isApps(gv schema.GroupVersion) bool { return gv.Group == "apps" || gv.Group == "extensions" }

// replicaSet is a ReplicaSet, or the Deployment that controls it.
func (o *owners) replicaSet(key reconcile.Key, uid types.UID) (*scaled, error) {
	set, err := lookUp(o.replicaSets, key, uid)
	if set == nil || err != nil {
		return nil, err
	}
	whole, err := o.replicaSets.Get(key)
	if err != nil {
		return nil, err
	}
	ref := metav1.GetControllerOfNoCopy(whole)
	if ref == nil || ref.Kind != "Deployment" {
		return set, nil
	}
	gv, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil || !isApps(gv) {
		return nil, err
	}
	return lookUp(o.deployments, reconcile.Key{Namespace: key.Namespace, Name: ref.Name}, ref.UID)
}

// lookUp finds a controller of pods in a cache; nil if it is not there, or another of its name.
func lookUp[T metav1.Object](c reconcile.Cache[T], key reconcile.Key, uid types.UID) (*scaled, error) {
	found, err := c.Get(key)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case found.GetUID() != uid:
		return nil, nil
	}
	return &scaled{uid, replicasOf(found)}, nil
}
