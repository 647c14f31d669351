package controllers

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

var (
	// generated are names, uids and times that differ from run to run.
	generated = regexp.MustCompile(`(-|uid-)[0-9]{5}\b`)
	times     = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`)
)

// dump is the whole world as text, without what differs from run to run. Of its lines it has those that keep wants.
func dump(w *reconciletest.World, keep func(line string) bool) string {
	var lines []string
	for resource, objects := range w.Objects() {
		for _, o := range objects {
			fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
			if err != nil {
				panic(err)
			}
			lines = append(lines, resource.Resource+" "+text(plain(fields)))
		}
	}
	if keep != nil {
		lines = slices.DeleteFunc(lines, func(line string) bool { return !keep(line) })
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// plain takes out versions; whether a status is of the present generation stays.
func plain(object map[string]any) any {
	m := object["metadata"].(map[string]any)
	status, _ := object["status"].(map[string]any)
	if observed, ok := status["observedGeneration"]; ok {
		status["observedGeneration"] = observed == m["generation"]
	}
	if annotations, ok := m["annotations"].(map[string]any); ok {
		delete(annotations, corev1.EndpointsLastChangeTriggerTime) // a measure of delays, lost with a write that failed
		if len(annotations) == 0 {
			delete(m, "annotations")
		}
	}
	for _, field := range []string{"generation", "resourceVersion", "uid", "creationTimestamp", "managedFields"} {
		delete(m, field)
	}
	return sorted(object)
}

// sorted has no versions, and its lists in the order of their text: the order of conditions, endpoints and the like tells nothing.
func sorted(value any) any {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "resourceVersion") // references have one, too
		for key := range v {
			v[key] = sorted(v[key])
		}
	case []any:
		for i := range v {
			v[i] = sorted(v[i])
		}
		slices.SortFunc(v, func(a, b any) int { return strings.Compare(text(a), text(b)) })
	}
	return value
}

func text(value any) string {
	body, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return times.ReplaceAllString(generated.ReplaceAllString(string(body), "$1*"), "T")
}

func diffOf(want, got string) string {
	if want == got {
		return ""
	}
	return cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n"))
}
