package apps

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
)

func TestDeploymentAnnotationsCountAsSpec(t *testing.T) {
	old := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	d := old.DeepCopy()
	prepareDeploymentUpdate(d, old)
	if d.Generation != 3 {
		t.Errorf("generation = %d after no change", d.Generation)
	}
	d.Annotations = map[string]string{"a": "b"}
	prepareDeploymentUpdate(d, old)
	if d.Generation != 4 {
		t.Errorf("generation = %d, want 4", d.Generation)
	}
}

func TestStatusCountsMustAgree(t *testing.T) {
	rs := &appsv1.ReplicaSetStatus{Replicas: 1, ReadyReplicas: 2, AvailableReplicas: 3}
	if diff := cmp.Diff([]string{
		"status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
		"status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
		"status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
	}, kindstest.Messages(validateReplicaSetStatus(rs))); diff != "" {
		t.Error("replica set (-want +got):\n", diff)
	}
	old := &appsv1.Deployment{Status: appsv1.DeploymentStatus{CollisionCount: ptr.To[int32](2)}}
	d := &appsv1.Deployment{Status: appsv1.DeploymentStatus{UpdatedReplicas: 1, CollisionCount: ptr.To[int32](1)}}
	if diff := cmp.Diff([]string{
		"status.collisionCount: Invalid value: 1: cannot be decremented",
		"status.updatedReplicas: Invalid value: 1: cannot be greater than status.replicas",
	}, kindstest.Messages(validateDeploymentStatus(d, old))); diff != "" {
		t.Error("deployment (-want +got):\n", diff)
	}
}
