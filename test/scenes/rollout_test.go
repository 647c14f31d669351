package scenes

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// failingRollout: new pods fit on no node. The old ones stay, the Deployment says why it does not go on, and the old template ends it.
func failingRollout(s *scene) {
	deadline, zero, one := int32(2), intstr.FromInt32(0), intstr.FromInt32(1)
	s.deploy("shop", 4, func(d *appsv1.Deployment) {
		d.Spec.ProgressDeadlineSeconds = &deadline
		d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &zero, MaxSurge: &one}}
	})
	s.seeDeployment("shop", "complete", complete)
	s.change("shop", func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.NodeSelector = map[string]string{"disk": "none-has-this"}
	})
	s.seeDeployment("shop", "over its deadline, with the old pods", func(d *appsv1.Deployment) bool {
		return reason(d, appsv1.DeploymentProgressing) == "ProgressDeadlineExceeded" &&
			d.Status.AvailableReplicas == 4 && d.Status.UpdatedReplicas == 1
	})
	s.see("the reason in the new pod", func(context.Context) (string, bool) {
		for _, pod := range s.pods("shop") {
			if pod.Spec.NodeName != "" {
				continue
			}
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
					want := fmt.Sprintf("0/%d nodes are available: %d node(s) didn't match Pod's node affinity/selector", nodes, nodes)
					return c.Message, len(c.Message) > len(want) && c.Message[:len(want)] == want
				}
			}
		}
		return "no pod waits", false
	})
	s.change("shop", func(d *appsv1.Deployment) { d.Spec.Template.Spec.NodeSelector = nil })
	s.seeDeployment("shop", "complete, as before", func(d *appsv1.Deployment) bool {
		return complete(d) && reason(d, appsv1.DeploymentProgressing) == "NewReplicaSetAvailable"
	})
	sets, err := s.client.AppsV1().ReplicaSets(s.namespace).List(s.Context(), metav1.ListOptions{})
	if err != nil || len(sets.Items) != 2 {
		s.Errorf("%d ReplicaSets, want the one that is used again and the one that failed: %v", len(sets.Items), err)
	}
}

func reason(d *appsv1.Deployment, kind appsv1.DeploymentConditionType) string {
	for _, c := range d.Status.Conditions {
		if c.Type == kind {
			return c.Reason
		}
	}
	return ""
}
