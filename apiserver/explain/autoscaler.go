package explain

import (
	"fmt"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
)

// autoscaler explains why a HorizontalPodAutoscaler does not scale: what its own conditions say, and what holds its target.
func (e *explainer) autoscaler(name Object, hpa *autoscalingv2.HorizontalPodAutoscaler) finding {
	f := finding{}
	for _, c := range hpa.Status.Conditions {
		switch {
		case c.Type == autoscalingv2.ScalingLimited && c.Status == corev1.ConditionTrue:
			f.blame(Cause{Object: name, What: c.Reason + ": " + c.Message, Change: limitChange(hpa, c.Reason)})
		case c.Type != autoscalingv2.ScalingLimited && c.Status == corev1.ConditionFalse:
			f.blame(Cause{Object: name, What: c.Reason + ": " + c.Message})
		default:
			f.clear(name, "%s: %s", c.Type, c.Message)
		}
	}
	e.failing(&f, name)
	e.target(&f, name, hpa)
	s := hpa.Status
	return f.conclude(
		fmt.Sprintf("%s has %d replicas and wants %d, and something holds it", name, s.CurrentReplicas, s.DesiredReplicas),
		fmt.Sprintf("%s has %d replicas and wants %d", name, s.CurrentReplicas, s.DesiredReplicas),
	)
}

func limitChange(hpa *autoscalingv2.HorizontalPodAutoscaler, reason string) string {
	switch reason {
	case "TooManyReplicas":
		return fmt.Sprintf("raise its maxReplicas, which is %d", hpa.Spec.MaxReplicas)
	case "TooFewReplicas":
		return fmt.Sprintf("lower its minReplicas, which is %d", wantedReplicas(hpa.Spec.MinReplicas))
	}
	return ""
}

// target blames what holds the workload that is scaled. One of a kind that is not built in is not looked at.
func (e *explainer) target(f *finding, name Object, hpa *autoscalingv2.HorizontalPodAutoscaler) {
	ref := hpa.Spec.ScaleTargetRef
	for _, kind := range []Kind{Deployments, StatefulSets, ReplicaSets} {
		if kind.Name != ref.Kind {
			continue
		}
		of := kind.Named(name.Namespace, ref.Name)
		object := e.Get(of)
		if object == nil {
			f.blame(Cause{Object: of, What: "it does not exist", Change: "make it, or change the scaleTargetRef"})
			return
		}
		if below, held := e.because(of, object); held {
			f.blame(below)
			return
		}
		f.clear(of, "nothing holds it")
	}
}
