package replicationcontroller

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"

	"github.com/setpoint-io/setpoint/controllers/replicaset"
)

// Config is what the controller needs for one term.
type Config = replicaset.Config

// Warm creates the informers and indexes that the controller reads.
func Warm(f informers.SharedInformerFactory) error {
	return replicaset.WarmSets(f, f.Core().V1().ReplicationControllers().Informer())
}

// Run reconciles ReplicationControllers until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	return replicaset.RunSets(ctx, cfg, replicationControllers(cfg))
}

func replicationControllers(cfg Config) replicaset.Sets {
	client := cfg.Client.CoreV1()
	return replicaset.Sets{
		Kind:     kind,
		Resource: "replicationcontrollers",
		Informer: cfg.Informers.Core().V1().ReplicationControllers().Informer(),
		View:     func(obj metav1.Object) *appsv1.ReplicaSet { return asSet(obj.(*corev1.ReplicationController)) },
		Get: func(namespace string) func(context.Context, string, metav1.GetOptions) (*appsv1.ReplicaSet, error) {
			return func(ctx context.Context, name string, options metav1.GetOptions) (*appsv1.ReplicaSet, error) {
				rc, err := client.ReplicationControllers(namespace).Get(ctx, name, options)
				if err != nil {
					return nil, err
				}
				return asSet(rc), nil
			}
		},
		UpdateStatus: func(ctx context.Context, rs *appsv1.ReplicaSet) error {
			_, err := client.ReplicationControllers(rs.Namespace).UpdateStatus(ctx, fromSet(rs), metav1.UpdateOptions{})
			return err
		},
		WithoutTerminating: true,
	}
}
