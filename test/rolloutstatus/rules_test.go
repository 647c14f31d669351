package rolloutstatus

import (
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubectl/pkg/polymorphichelpers"
)

// rule is how a client decides that a rollout is finished.
type rule struct {
	name     string
	finished func(object *unstructured.Unstructured) bool
	// applies is false where upstream's status misleads the rule too; nil means that it always applies.
	applies func(object *unstructured.Unstructured) bool
}

var rules = []rule{
	{name: "kubectl rollout status", finished: kubectlRule},
	{name: "conditions and updated replicas", finished: conditionRule},
	{name: "counting", finished: countingRule, applies: surges},
}

// kubectlRule is what ends `kubectl rollout status`.
func kubectlRule(object *unstructured.Unstructured) bool {
	viewer, err := polymorphichelpers.StatusViewerFor(object.GroupVersionKind().GroupKind())
	if err != nil {
		return false
	}
	_, done, err := viewer.Status(object, 0)
	return done && err == nil
}

// conditionRule is that of tools that apply sets of objects and wait for them: the newest generation is observed, every
// count has arrived, and the conditions agree.
func conditionRule(object *unstructured.Unstructured) bool {
	if !observed(object) {
		return false
	}
	switch object.GetKind() {
	case "Deployment":
		want := wanted(object)
		return arrived(object, want, "replicas", "updatedReplicas", "readyReplicas", "availableReplicas") &&
			condition(object, "Available") == "True" && condition(object, "Progressing") == "True" &&
			reason(object, "Progressing") == "NewReplicaSetAvailable"
	case "StatefulSet":
		return arrived(object, wanted(object), "replicas", "updatedReplicas", "readyReplicas", "currentReplicas") && oneRevision(object)
	}
	want := count(object, "desiredNumberScheduled")
	return arrived(object, want, "currentNumberScheduled", "updatedNumberScheduled", "numberReady", "numberAvailable")
}

// countingRule is that of tools that compare replicas with those that are available, and do not ask how many are updated.
func countingRule(object *unstructured.Unstructured) bool {
	if !observed(object) {
		return false
	}
	switch object.GetKind() {
	case "Deployment":
		return arrived(object, wanted(object), "replicas", "availableReplicas") && count(object, "unavailableReplicas") == 0
	case "StatefulSet":
		return arrived(object, wanted(object), "replicas", "updatedReplicas", "readyReplicas") && oneRevision(object)
	}
	want := count(object, "desiredNumberScheduled")
	return arrived(object, want, "updatedNumberScheduled", "numberReady") && count(object, "numberUnavailable") == 0
}

// surges says that old pods of a Deployment stop only after new ones were asked for. Without it there is a moment when
// the old pods are stopping and no new one is asked for yet, with nothing in the counts that shows it. So it is when the
// Deployment is being deleted, and its newest ReplicaSet went first.
func surges(object *unstructured.Unstructured) bool {
	if object.GetKind() != "Deployment" {
		return true
	}
	if object.GetDeletionTimestamp() != nil {
		return false
	}
	strategy, _, _ := unstructured.NestedString(object.Object, "spec", "strategy", "type")
	surge, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "strategy", "rollingUpdate", "maxSurge")
	return strategy != string(appsv1.RecreateDeploymentStrategyType) && surge != int64(0)
}

func observed(object *unstructured.Unstructured) bool {
	return count(object, "observedGeneration") >= object.GetGeneration()
}

func oneRevision(object *unstructured.Unstructured) bool {
	current, _, _ := unstructured.NestedString(object.Object, "status", "currentRevision")
	update, _, _ := unstructured.NestedString(object.Object, "status", "updateRevision")
	return current == update
}

func arrived(object *unstructured.Unstructured, want int64, fields ...string) bool {
	for _, field := range fields {
		if count(object, field) != want {
			return false
		}
	}
	return true
}

func wanted(object *unstructured.Unstructured) int64 {
	n, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	return n
}

func count(object *unstructured.Unstructured, field string) int64 {
	n, _, _ := unstructured.NestedInt64(object.Object, "status", field)
	return n
}

func condition(object *unstructured.Unstructured, kind string) string {
	return ofCondition(object, kind, "status")
}

func reason(object *unstructured.Unstructured, kind string) string {
	return ofCondition(object, kind, "reason")
}

func ofCondition(object *unstructured.Unstructured, kind, field string) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range conditions {
		if c, ok := item.(map[string]any); ok && c["type"] == kind {
			value, _ := c[field].(string)
			return value
		}
	}
	return ""
}
