package replicaset

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// Sets is where the sets are that the controller keeps: ReplicaSets, or another
// kind that is one in all but name (package replicationcontroller).
type Sets struct {
	// Kind is what owner references name.
	Kind schema.GroupVersionKind
	// Resource is where they are.
	Resource schema.GroupVersionResource
	// View shows an object of the cache as a ReplicaSet; both are read-only.
	// Events name what its TypeMeta says, or a ReplicaSet when that is empty.
	View func(obj metav1.Object) *appsv1.ReplicaSet
	// Get asks the API for a set of a namespace, past any cache.
	Get func(namespace string) func(ctx context.Context, name string, options metav1.GetOptions) (*appsv1.ReplicaSet, error)
	// UpdateStatus writes the status of a set.
	UpdateStatus func(ctx context.Context, rs *appsv1.ReplicaSet) error
	// Queue is the loop's name in metrics.
	Queue string
	// WithoutTerminating is for kinds that do not count terminating pods.
	WithoutTerminating bool

	cache reconcile.Cache[metav1.Object]
}

// replicaSets are the sets that this package is named after.
func replicaSets(client kubernetes.Interface) Sets {
	return Sets{
		Kind:     appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		Queue:    "replicaset",
		Resource: reconcile.ReplicaSets.Declaration().Resource,
		View:     func(obj metav1.Object) *appsv1.ReplicaSet { return obj.(*appsv1.ReplicaSet) },
		Get: func(namespace string) func(context.Context, string, metav1.GetOptions) (*appsv1.ReplicaSet, error) {
			return client.AppsV1().ReplicaSets(namespace).Get
		},
		UpdateStatus: func(ctx context.Context, rs *appsv1.ReplicaSet) error {
			_, err := client.AppsV1().ReplicaSets(rs.Namespace).UpdateStatus(ctx, rs, metav1.UpdateOptions{})
			return err
		},
	}
}

// stored is what the controller reads of the sets.
func (s Sets) stored() reconcile.Kind[metav1.Object] {
	return reconcile.KindOf[metav1.Object](s.Resource).By(reconcile.ByController)
}

// cached is a set as the cache has it; nil when there is none.
func (s Sets) cached(key reconcile.Key) (*appsv1.ReplicaSet, error) {
	obj, err := s.cache.Get(key)
	if err != nil {
		return nil, reconcile.IgnoreNotFound(err)
	}
	return s.View(obj), nil
}

// in lists the sets of a namespace.
func (s Sets) in(namespace string) []*appsv1.ReplicaSet { return s.views(s.cache.List(namespace, nil)) }

// ownedBy lists the sets with a controlling owner.
func (s Sets) ownedBy(owner types.UID) []*appsv1.ReplicaSet {
	return s.views(s.cache.Owned(&metav1.ObjectMeta{UID: owner}))
}

func (s Sets) views(found []metav1.Object, err error) []*appsv1.ReplicaSet {
	if err != nil {
		return nil
	}
	sets := make([]*appsv1.ReplicaSet, len(found))
	for i, obj := range found {
		sets[i] = s.View(obj)
	}
	return sets
}

// writeStatus writes the status unless it is already so.
func (s Sets) writeStatus(ctx context.Context, rs *appsv1.ReplicaSet, status appsv1.ReplicaSetStatus) error {
	if s.WithoutTerminating {
		status.TerminatingReplicas = nil
	}
	if apiequality.Semantic.DeepEqual(rs.Status, status) {
		return nil
	}
	next := rs.DeepCopy()
	next.Status = status
	if err := s.UpdateStatus(ctx, next); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("write status: %w", err)
	}
	return nil
}
