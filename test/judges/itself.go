package judges

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// seeItself finds what is wrong with a status whoever reads it.
func (c *Court) seeItself(s *subject, o *unstructured.Unstructured) {
	if seen := count(o, "observedGeneration"); seen > o.GetGeneration() {
		c.find(o, fmt.Sprintf("generation %d is observed, which there is not yet", seen))
	} else if s.last != nil && seen < count(s.last, "observedGeneration") {
		c.find(o, fmt.Sprintf("generation %d is observed, after %d", seen, count(s.last, "observedGeneration")))
	}
	kinds := map[any]bool{}
	for _, condition := range mapsOf(list(o, "status", "conditions")) {
		if kinds[condition["type"]] {
			c.find(o, fmt.Sprintf("it has two conditions %v", condition["type"]))
		}
		kinds[condition["type"]] = true
		if n, _ := condition["observedGeneration"].(int64); n > o.GetGeneration() {
			c.find(o, fmt.Sprintf("the condition %v is of generation %d, which there is not yet", condition["type"], n))
		}
		c.seeTransition(s, o, condition)
	}
	if o.GetKind() == "CronJob" {
		c.seeActive(o)
	}
}

// seeTransition: whoever sorts by lastTransitionTime or counts flips believes that it changes with the status.
func (c *Court) seeTransition(s *subject, o *unstructured.Unstructured, now map[string]any) {
	if s.last == nil {
		return
	}
	kind, _ := now["type"].(string)
	was := conditionOf(s.last, kind)
	if was != nil && was["status"] == now["status"] && was["lastTransitionTime"] != now["lastTransitionTime"] && stays(o, kind) {
		c.find(o, fmt.Sprintf("the time of its condition %s changes, and its status does not", kind))
	}
}

// stays is whether upstream leaves the time of a condition while its status stays.
func stays(o *unstructured.Unstructured, kind string) bool {
	return o.GetKind() != "ReplicaSet" || kind != "ReplicaFailure"
}

// seeActive: what a CronJob calls active is a Job that there was.
func (c *Court) seeActive(o *unstructured.Unstructured) {
	for _, ref := range mapsOf(list(o, "status", "active")) {
		if uid, _ := ref["uid"].(string); !c.world.ever[uid] {
			c.find(o, fmt.Sprintf("it calls a Job active that never was: %v", ref["name"]))
		}
	}
}
