package judges

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// argo judges as Argo CD shows the health of what it applies: Healthy is Done, Degraded is Failed. Of kinds that it has no check for it
// says nothing. What is suspended has Begun.
func argo(o *unstructured.Unstructured) Verdict {
	rule := argoRules[o.GetKind()]
	switch {
	case o.GetDeletionTimestamp() != nil:
		return Deleting
	case rule == nil:
		return Unknown
	}
	return rule(o)
}

var argoRules = map[string]func(o *unstructured.Unstructured) Verdict{
	"Deployment": argoDeployment, "ReplicaSet": argoReplicaSet, "StatefulSet": argoStatefulSet, "DaemonSet": argoDaemonSet,
	"Job": argoJob, "HorizontalPodAutoscaler": argoAutoscaler, "PersistentVolumeClaim": argoClaim,
	"CustomResourceDefinition": argoDefinition, "PodDisruptionBudget": argoBudget, "Gateway": argoGateway,
	"APIService": func(o *unstructured.Unstructured) Verdict { return when(isTrue(o, "Available")) },
	"Ingress": func(o *unstructured.Unstructured) Verdict {
		return when(len(list(o, "status", "loadBalancer", "ingress")) > 0)
	},
	"Service": func(o *unstructured.Unstructured) Verdict {
		return when(text(o, "spec", "type") != "LoadBalancer" || len(list(o, "status", "loadBalancer", "ingress")) > 0)
	},
}

func argoDeployment(o *unstructured.Unstructured) Verdict {
	paused, _, _ := unstructured.NestedBool(o.Object, "spec", "paused")
	switch {
	case paused:
		return Begun
	case !observed(o):
		return InProgress
	case reason(o, "Progressing") == "ProgressDeadlineExceeded":
		return Failed
	}
	updated := count(o, "updatedReplicas")
	return when(updated >= replicas(o) && count(o, "replicas") <= updated && count(o, "availableReplicas") >= updated)
}

func argoReplicaSet(o *unstructured.Unstructured) Verdict {
	if observed(o) && isTrue(o, "ReplicaFailure") {
		return Failed
	}
	return when(observed(o) && arrived(o, replicas(o), "availableReplicas"))
}

func argoStatefulSet(o *unstructured.Unstructured) Verdict {
	want, kind := replicas(o), text(o, "spec", "updateStrategy", "type")
	_, rolling, _ := unstructured.NestedMap(o.Object, "spec", "updateStrategy", "rollingUpdate")
	partition := number(o, want, "spec", "updateStrategy", "rollingUpdate", "partition")
	switch {
	case count(o, "observedGeneration") == 0 || !observed(o) || !arrived(o, want, "readyReplicas"):
		return InProgress
	case kind == "RollingUpdate" && rolling:
		return when(arrived(o, want-partition, "updatedReplicas"))
	case kind == "OnDelete":
		return Done
	}
	return when(text(o, "status", "currentRevision") == text(o, "status", "updateRevision"))
}

func argoDaemonSet(o *unstructured.Unstructured) Verdict {
	if !observed(o) {
		return InProgress
	}
	want := count(o, "desiredNumberScheduled")
	return when(text(o, "spec", "updateStrategy", "type") == "OnDelete" || arrived(o, want, "updatedNumberScheduled", "numberAvailable"))
}

// argoJob looks at which conditions there are, and of Suspended alone at the status too.
func argoJob(o *unstructured.Unstructured) Verdict {
	switch {
	case conditionOf(o, "Failed") != nil:
		return Failed
	case isTrue(o, "Suspended"):
		return Begun
	}
	return when(conditionOf(o, "Complete") != nil || conditionOf(o, "Suspended") != nil)
}

// degraded are the reasons of an autoscaler that cannot do its work.
var degraded = map[string][]string{
	"AbleToScale": {"FailedGetScale", "FailedUpdateScale"},
	"ScalingActive": {"FailedGetResourceMetric", "FailedGetObjectMetric", "FailedGetPodsMetric", "FailedGetExternalMetric",
		"FailedComputeMetricsReplicas", "InvalidSelector"},
}

func argoAutoscaler(o *unstructured.Unstructured) Verdict {
	for kind, reasons := range degraded {
		if slices.Contains(reasons, reason(o, kind)) {
			return Failed
		}
	}
	return when(isTrue(o, "AbleToScale") || isTrue(o, "ScalingLimited"))
}

func argoClaim(o *unstructured.Unstructured) Verdict {
	if text(o, "status", "phase") == "Lost" {
		return Failed
	}
	return when(text(o, "status", "phase") == "Bound")
}

func argoDefinition(o *unstructured.Unstructured) Verdict {
	if condition(o, "NamesAccepted") == "False" || isTrue(o, "NonStructuralSchema") {
		return Failed
	}
	return when(isTrue(o, "Established"))
}

func argoBudget(o *unstructured.Unstructured) Verdict {
	return when(observed(o) && conditionOf(o, "DisruptionAllowed") != nil)
}

func argoGateway(o *unstructured.Unstructured) Verdict {
	for _, kind := range []string{"Accepted", "Programmed"} {
		switch {
		case conditionOf(o, kind) == nil || generationOf(o, kind) != o.GetGeneration():
			return InProgress
		case condition(o, kind) == "False" && reason(o, kind) != "Pending":
			return Failed
		case condition(o, kind) != "True":
			return InProgress
		}
	}
	return Done
}
