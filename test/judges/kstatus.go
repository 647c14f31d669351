package judges

import (
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Kstatus judges as sigs.k8s.io/cli-utils does, which Flux, kpt and Config Sync wait by. A Job that runs is Begun, which it calls Current.
func Kstatus(o *unstructured.Unstructured) Verdict {
	if verdict := kstatusOfAll(o); verdict != Unknown {
		return verdict
	}
	if rule := kstatusRules[o.GroupVersionKind().GroupKind().String()]; rule != nil {
		return rule(o)
	}
	if ready := conditionOf(o, "Ready"); ready != nil {
		return when(ready["status"] == "True")
	}
	return Done // what has no conditions is as it should be
}

// kstatusOfAll is what it says of any kind; Unknown where the kind's own rule decides.
func kstatusOfAll(o *unstructured.Unstructured) Verdict {
	is, versioned, _ := unstructured.NestedInt64(o.Object, "metadata", "generation")
	seen, told, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	switch {
	case o.GetDeletionTimestamp() != nil:
		return Deleting
	case versioned && told && seen != is:
		return InProgress
	}
	for _, c := range mapsOf(list(o, "status", "conditions")) { // the first one decides
		switch {
		case c["type"] == "Reconciling" && c["status"] == "True":
			return InProgress
		case c["type"] == "Stalled" && c["status"] == "True":
			return Failed
		}
	}
	return Unknown
}

// kstatusRules are by <kind>.<group>.
var kstatusRules = map[string]func(o *unstructured.Unstructured) Verdict{
	"Deployment.apps": kstatusDeployment, "ReplicaSet.apps": kstatusReplicaSet, "StatefulSet.apps": kstatusStatefulSet,
	"DaemonSet.apps": kstatusDaemonSet, "Job.batch": kstatusJob,
	"CustomResourceDefinition.apiextensions.k8s.io": kstatusDefinition, "Pod": kstatusPod,
	"PersistentVolumeClaim": func(o *unstructured.Unstructured) Verdict { return when(text(o, "status", "phase") == "Bound") },
	"Service": func(o *unstructured.Unstructured) Verdict {
		return when(text(o, "spec", "type") != "LoadBalancer" || text(o, "spec", "clusterIP") != "")
	},
	"PodDisruptionBudget.policy": always, "CronJob.batch": always, "ConfigMap": always, "Secret": always,
}

func always(*unstructured.Unstructured) Verdict { return Done }

func kstatusDeployment(o *unstructured.Unstructured) Verdict {
	if reason(o, "Progressing") == "ProgressDeadlineExceeded" {
		return Failed
	}
	endless := number(o, math.MaxInt32, "spec", "progressDeadlineSeconds") == math.MaxInt32
	progressed := endless || isTrue(o, "Progressing") && reason(o, "Progressing") == "NewReplicaSetAvailable"
	want := replicas(o)
	return when(arrived(o, want, "replicas", "updatedReplicas", "readyReplicas") && count(o, "replicas") <= want &&
		count(o, "availableReplicas") >= count(o, "updatedReplicas") && progressed && isTrue(o, "Available"))
}

func kstatusReplicaSet(o *unstructured.Unstructured) Verdict {
	want := replicas(o)
	return when(!isTrue(o, "ReplicaFailure") && arrived(o, want, "fullyLabeledReplicas", "availableReplicas", "readyReplicas") &&
		count(o, "replicas") <= want)
}

func kstatusStatefulSet(o *unstructured.Unstructured) Verdict {
	if text(o, "spec", "updateStrategy", "type") == "OnDelete" {
		return Done
	}
	want := replicas(o)
	if !arrived(o, want, "replicas", "readyReplicas") || count(o, "replicas") > want {
		return InProgress
	}
	if partition := number(o, -1, "spec", "updateStrategy", "rollingUpdate", "partition"); partition != -1 {
		return when(count(o, "updatedReplicas") >= want-partition)
	}
	return when(arrived(o, want, "currentReplicas") && text(o, "status", "currentRevision") == text(o, "status", "updateRevision"))
}

func kstatusDaemonSet(o *unstructured.Unstructured) Verdict {
	want := number(o, -1, "status", "desiredNumberScheduled")
	_, versioned, _ := unstructured.NestedInt64(o.Object, "metadata", "generation")
	_, told, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return when(versioned && told && want != -1 &&
		arrived(o, want, "currentNumberScheduled", "updatedNumberScheduled", "numberAvailable", "numberReady"))
}

func kstatusJob(o *unstructured.Unstructured) Verdict {
	for _, c := range mapsOf(list(o, "status", "conditions")) {
		switch {
		case c["type"] == "Complete" && c["status"] == "True":
			return Done
		case c["type"] == "Failed" && c["status"] == "True":
			return Failed
		}
	}
	if text(o, "status", "startTime") == "" {
		return InProgress
	}
	return Begun
}

func kstatusDefinition(o *unstructured.Unstructured) Verdict {
	for _, c := range mapsOf(list(o, "status", "conditions")) {
		switch {
		case c["type"] == "NamesAccepted" && c["status"] == "False",
			c["type"] == "Established" && c["status"] == "False" && c["reason"] != "Installing":
			return Failed
		case c["type"] == "Established" && c["status"] == "True":
			return Done
		}
	}
	return InProgress
}

// schedulingPatience is for how long a pod without a place has not failed.
const schedulingPatience = 15 * time.Second

func kstatusPod(o *unstructured.Unstructured) Verdict {
	switch phase := text(o, "status", "phase"); {
	case phase == "Succeeded" || phase == "Failed":
		return Done
	case phase == "Running" && isTrue(o, "Ready"):
		return Done
	case phase == "Running" && slices.ContainsFunc(mapsOf(list(o, "status", "containerStatuses")), crashLoops):
		return Failed
	case phase == "Pending" && condition(o, "PodScheduled") == "False" && reason(o, "PodScheduled") == "Unschedulable" &&
		time.Since(o.GetCreationTimestamp().Time) >= schedulingPatience:
		return Failed
	case phase == "Unknown":
		return Unknown // it has no word for that
	}
	return InProgress
}

func crashLoops(status map[string]any) bool {
	why, _, _ := unstructured.NestedString(status, "state", "waiting", "reason")
	return why == "CrashLoopBackOff"
}
