package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// chosen are fields that each server chooses for itself.
var chosen = [][]string{
	{"metadata", "uid"}, {"metadata", "creationTimestamp"}, {"metadata", "resourceVersion"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"},
	{"spec", "healthCheckNodePort"}, {"details", "uid"},
}

// chosenKeys are such keys wherever they stand.
var chosenKeys = []string{
	"nodePort", "controller-uid", "batch.kubernetes.io/controller-uid", "f:controller-uid", "job-name", "batch.kubernetes.io/job-name",
	"lastTransitionTime", "time",
}

// normal is an answer without what each server chooses for itself. Of several mistakes the order says nothing: upstream goes through maps.
func normal(object map[string]any) map[string]any {
	for _, path := range chosen {
		unstructured.RemoveNestedField(object, path...)
	}
	if name, _, _ := unstructured.NestedString(object, "metadata", "generateName"); name != "" {
		unstructured.RemoveNestedField(object, "metadata", "name")
	}
	if causes, found, _ := unstructured.NestedSlice(object, "details", "causes"); found && len(causes) > 1 {
		slices.SortFunc(causes, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		_ = unstructured.SetNestedSlice(object, causes, "details", "causes") // they came from there
		delete(object, "message")
	}
	withoutKeys(object)
	return object
}

func withoutKeys(value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range chosenKeys {
			delete(value, key)
		}
		for _, below := range value {
			withoutKeys(below)
		}
	case []any:
		for _, below := range value {
			withoutKeys(below)
		}
	}
}

// withoutTimes leaves out of a stored definition who wrote what when, and the order of its conditions.
func withoutTimes(answers [2]answer) [2]answer {
	for _, a := range answers {
		unstructured.RemoveNestedField(a.object, "metadata", "managedFields")
		conditions, _, _ := unstructured.NestedSlice(a.object, "status", "conditions")
		slices.SortFunc(conditions, func(a, b any) int { return strings.Compare(typeOf(a), typeOf(b)) })
		if a.object["status"] != nil {
			_ = unstructured.SetNestedSlice(a.object, conditions, "status", "conditions") // they came from there
		}
	}
	return answers
}

func typeOf(condition any) string {
	c, _ := condition.(map[string]any)
	text, _ := c["type"].(string)
	return text
}

// differences are the fields that differ, with both values.
func differences(upstream, ours map[string]any) []string {
	d := &differing{}
	cmp.Equal(normal(upstream), normal(ours), cmp.Reporter(d))
	return d.found
}

// differing collects what cmp finds.
type differing struct {
	path  cmp.Path
	found []string
}

func (d *differing) PushStep(step cmp.PathStep) { d.path = append(d.path, step) }
func (d *differing) PopStep()                   { d.path = d.path[:len(d.path)-1] }

func (d *differing) Report(result cmp.Result) {
	if result.Equal() {
		return
	}
	upstream, ours := d.path.Last().Values()
	d.found = append(d.found, fmt.Sprintf("%s: upstream %v, ours %v", pathText(d.path), upstream, ours))
}

// pathText is a path without places in lists, so that the same difference of many objects is told once.
func pathText(path cmp.Path) string {
	var b strings.Builder
	for _, step := range path {
		switch step := step.(type) {
		case cmp.MapIndex:
			b.WriteString("." + step.Key().String())
		case cmp.SliceIndex:
			b.WriteString("[]")
		}
	}
	return b.String()
}
