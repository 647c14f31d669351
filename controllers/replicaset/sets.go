package replicaset

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// Sets is where the sets are that the controller keeps: ReplicaSets, or another
// kind that is one in all but name (package replicationcontroller).
type Sets struct {
	// Kind is what owner references name.
	Kind schema.GroupVersionKind
	// Resource is the kind's name in URLs and logs.
	Resource string
	Informer cache.SharedIndexInformer
	// View shows an object of the informer as a ReplicaSet; both are read-only.
	// Events name what its TypeMeta says, or a ReplicaSet when that is empty.
	View func(obj metav1.Object) *appsv1.ReplicaSet
	// Get asks the API for a set of a namespace, past any cache.
	Get func(namespace string) func(ctx context.Context, name string, options metav1.GetOptions) (*appsv1.ReplicaSet, error)
	// UpdateStatus writes the status of a set.
	UpdateStatus func(ctx context.Context, rs *appsv1.ReplicaSet) error
	// WithoutTerminating is for kinds that do not count terminating pods.
	WithoutTerminating bool
}

// replicaSets are the sets that this package is named after.
func replicaSets(cfg Config) Sets {
	client := cfg.Client.AppsV1()
	return Sets{
		Kind:     appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		Resource: "replicasets",
		Informer: cfg.Informers.Apps().V1().ReplicaSets().Informer(),
		View:     func(obj metav1.Object) *appsv1.ReplicaSet { return obj.(*appsv1.ReplicaSet) },
		Get: func(namespace string) func(context.Context, string, metav1.GetOptions) (*appsv1.ReplicaSet, error) {
			return client.ReplicaSets(namespace).Get
		},
		UpdateStatus: func(ctx context.Context, rs *appsv1.ReplicaSet) error {
			_, err := client.ReplicaSets(rs.Namespace).UpdateStatus(ctx, rs, metav1.UpdateOptions{})
			return err
		},
	}
}

// cached is a set as the informer has it; nil when there is none.
func (s Sets) cached(key reconcile.Key) (*appsv1.ReplicaSet, error) {
	obj, exists, err := s.Informer.GetIndexer().GetByKey(key.Namespace + "/" + key.Name)
	if err != nil || !exists {
		return nil, err
	}
	return s.View(reconcile.ObjectOf(obj)), nil
}

// byIndex lists sets of the informer.
func (s Sets) byIndex(index, value string) []*appsv1.ReplicaSet {
	found, err := reconcile.ByIndex[metav1.Object](s.Informer, index, value)
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
