package judges

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

func text(o *unstructured.Unstructured, path ...string) string {
	s, _, _ := unstructured.NestedString(o.Object, path...)
	return s
}

func list(o *unstructured.Unstructured, path ...string) []any {
	l, _, _ := unstructured.NestedSlice(o.Object, path...)
	return l
}

// number is a number of the object, or otherwise if it has none.
func number(o *unstructured.Unstructured, otherwise int64, path ...string) int64 {
	if n, found, _ := unstructured.NestedInt64(o.Object, path...); found {
		return n
	}
	return otherwise
}

// count is a number in the status.
func count(o *unstructured.Unstructured, field string) int64 { return number(o, 0, "status", field) }

// replicas is how many are asked for.
func replicas(o *unstructured.Unstructured) int64 { return number(o, 1, "spec", "replicas") }

// observed is whether the status is of the newest generation.
func observed(o *unstructured.Unstructured) bool {
	return count(o, "observedGeneration") >= o.GetGeneration()
}

// mapsOf are the items of a list that are objects.
func mapsOf(l []any) (found []map[string]any) {
	for _, item := range l {
		if m, ok := item.(map[string]any); ok {
			found = append(found, m)
		}
	}
	return found
}

func conditionOf(o *unstructured.Unstructured, kind string) map[string]any {
	for _, c := range mapsOf(list(o, "status", "conditions")) {
		if c["type"] == kind {
			return c
		}
	}
	return nil
}

func fieldOf(o *unstructured.Unstructured, kind, field string) string {
	s, _ := conditionOf(o, kind)[field].(string)
	return s
}

func condition(o *unstructured.Unstructured, kind string) string { return fieldOf(o, kind, "status") }
func reason(o *unstructured.Unstructured, kind string) string    { return fieldOf(o, kind, "reason") }
func isTrue(o *unstructured.Unstructured, kind string) bool      { return condition(o, kind) == "True" }

// generationOf is which generation a condition is of; one that does not say is of the newest.
func generationOf(o *unstructured.Unstructured, kind string) int64 {
	if n, found := conditionOf(o, kind)["observedGeneration"].(int64); found {
		return n
	}
	return o.GetGeneration()
}

// arrived is whether no one of some counts is less than what is wanted.
func arrived(o *unstructured.Unstructured, want int64, fields ...string) bool {
	for _, field := range fields {
		if count(o, field) < want {
			return false
		}
	}
	return true
}
