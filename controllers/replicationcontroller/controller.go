package replicationcontroller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
)

// New keeps ReplicationControllers.
func New() reconcile.Controller {
	return replicaset.NewOf("replication-controller", replicationControllers)
}

func replicationControllers(client kubernetes.Interface) replicaset.Sets {
	return replicaset.Sets{
		Kind:     kind,
		Queue:    "replicationmanager",
		Resource: reconcile.ReplicationControllers.Declaration().Resource,
		View:     func(obj metav1.Object) *appsv1.ReplicaSet { return asSet(obj.(*corev1.ReplicationController)) },
		Get: func(namespace string) func(context.Context, string, metav1.GetOptions) (*appsv1.ReplicaSet, error) {
			return func(ctx context.Context, name string, options metav1.GetOptions) (*appsv1.ReplicaSet, error) {
				rc, err := client.CoreV1().ReplicationControllers(namespace).Get(ctx, name, options)
				if err != nil {
					return nil, err
				}
				return asSet(rc), nil
			}
		},
		UpdateStatus: func(ctx context.Context, rs *appsv1.ReplicaSet) error {
			_, err := client.CoreV1().ReplicationControllers(rs.Namespace).UpdateStatus(ctx, fromSet(rs), metav1.UpdateOptions{})
			return err
		},
		WithoutTerminating: true,
	}
}
