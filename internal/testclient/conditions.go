package testclient

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Condition is something that an object may come to be.
type Condition struct {
	name string
	// judge says whether the object is so, and if not, how it is. It gets nil if there is no such object.
	judge func(object *unstructured.Unstructured) (is bool, how string)
}

// String is how failures name it.
func (c Condition) String() string { return c.name }

var (
	// Available: a workload has rolled out and all its replicas are available; another kind has the condition
	// Available.
	Available = Condition{"Available", of(rolledOut("availableReplicas", "Available"))}
	// Ready: all replicas of a workload are ready; another kind (a Pod, a Node, a custom one) has the condition Ready.
	Ready = Condition{"Ready", of(rolledOut("readyReplicas", "Ready"))}
	// Complete: a Job has the condition Complete.
	Complete = True("Complete")
	// Failed: a Job has the condition Failed.
	Failed = True("Failed")
	// Running: a Pod is in the phase Running.
	Running = Field("Running", "Running", "status", "phase")
	// Bound: a claim is in the phase Bound.
	Bound = Field("Bound", "Bound", "status", "phase")
	// Exists: there is such an object.
	Exists = Condition{"there", of(func(*unstructured.Unstructured) (bool, string) { return true, "" })}
	// Gone: there is no such object.
	Gone = Condition{"gone", func(object *unstructured.Unstructured) (bool, string) {
		if object == nil {
			return true, ""
		}
		if object.GetDeletionTimestamp() != nil {
			return false, fmt.Sprintf("it is being deleted, and finalizers hold it: %s", strings.Join(object.GetFinalizers(), ", "))
		}
		return false, "it is there and nobody deletes it"
	}}
)

// True is that the status has a condition of the type with status True, for the present generation.
func True(conditionType string) Condition {
	return Condition{conditionType, of(func(object *unstructured.Unstructured) (bool, string) { return hasCondition(object, conditionType) })}
}

// Field is that a field has a value, compared as text. name is what failures call it.
func Field(name, value string, path ...string) Condition {
	return Condition{name, of(func(object *unstructured.Unstructured) (bool, string) {
		found, ok, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
		if !ok {
			return false, strings.Join(path, ".") + " is not set"
		}
		return fmt.Sprint(found) == value, fmt.Sprintf("%s is %v", strings.Join(path, "."), found)
	})}
}

// That is that a function of the object says so. name is what failures call it.
func That(name string, is func(object *unstructured.Unstructured) bool) Condition {
	return Condition{name, of(func(object *unstructured.Unstructured) (bool, string) { return is(object), "" })}
}

// of makes a judge of one that needs an object.
func of(judge func(*unstructured.Unstructured) (bool, string)) func(*unstructured.Unstructured) (bool, string) {
	return func(object *unstructured.Unstructured) (bool, string) {
		if object == nil {
			return false, "there is no such object"
		}
		return judge(object)
	}
}

// rolledOut judges workloads by their replicas, and others by a condition.
func rolledOut(field, conditionType string) func(*unstructured.Unstructured) (bool, string) {
	return func(object *unstructured.Unstructured) (bool, string) {
		switch object.GetKind() {
		case "Deployment", "StatefulSet", "ReplicaSet", "ReplicationController":
			want, set := number(object, "spec", "replicas")
			if !set {
				want = 1
			}
			return replicas(object, want, field, object.GetKind() == "Deployment" || object.GetKind() == "StatefulSet")
		case "DaemonSet":
			want, _ := number(object, "status", "desiredNumberScheduled")
			return replicas(object, want, map[string]string{"availableReplicas": "numberAvailable", "readyReplicas": "numberReady"}[field], false)
		}
		return hasCondition(object, conditionType)
	}
}

func replicas(object *unstructured.Unstructured, want int64, field string, updates bool) (bool, string) {
	if observed, _ := number(object, "status", "observedGeneration"); observed < object.GetGeneration() {
		return false, "its controller has not seen its newest spec"
	}
	if updated, _ := number(object, "status", "updatedReplicas"); updates && updated < want {
		return false, fmt.Sprintf("%d of %d replicas are of the newest template", updated, want)
	}
	have, _ := number(object, "status", field)
	if total, set := number(object, "status", "replicas"); set && total > want {
		return false, fmt.Sprintf("%d replicas are more than the %d wanted", total, want)
	}
	return have >= want, fmt.Sprintf("status.%s is %d of %d", field, have, want)
}

func number(object *unstructured.Unstructured, path ...string) (int64, bool) {
	n, set, err := unstructured.NestedInt64(object.Object, path...)
	return n, set && err == nil
}

func hasCondition(object *unstructured.Unstructured, conditionType string) (is bool, how string) {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, item := range conditions {
		condition, ok := item.(map[string]any)
		if !ok || condition["type"] != conditionType {
			continue
		}
		if observed, ok := condition["observedGeneration"].(int64); ok && observed < object.GetGeneration() {
			return false, fmt.Sprintf("its condition %s is of an older generation", conditionType)
		}
		how = fmt.Sprintf("its condition %s is %v: %v %v", conditionType, condition["status"], condition["reason"], condition["message"])
		return condition["status"] == "True", how
	}
	return false, fmt.Sprintf("it has no condition %s", conditionType)
}
