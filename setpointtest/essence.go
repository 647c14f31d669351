package setpointtest

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// shownLines is how many differing lines a finding shows.
const shownLines = 12

// eachObject lists every kind that can be listed, but heartbeats.
func (w *world) eachObject(see func(*unstructured.Unstructured) error) error {
	config := w.asAdmin()
	config.WarningHandler = rest.NoWarnings{} // of kinds that are deprecated
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	lists, err := client.Discovery().ServerPreferredResources()
	if err != nil {
		return err
	}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, resource := range list.APIResources {
			of := schema.GroupResource{Group: version.Group, Resource: resource.Name}
			if heartbeats[of] || !slices.Contains(resource.Verbs, "list") {
				continue
			}
			found, err := objects.Resource(version.WithResource(resource.Name)).List(w.background(), metav1.ListOptions{})
			if err != nil {
				return err
			}
			for i := range found.Items {
				if err := see(&found.Items[i]); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// essence is what the test's clients and helpers wrote, as it is now, without what differs in each world.
func (w *world) essence() (string, error) {
	changes, _ := w.current.Load().Changes(w.start)
	written := map[string]bool{}
	for _, change := range changes {
		if change.User == admin().Name {
			written[change.UID] = true
		}
	}
	var all []string
	err := w.eachObject(func(object *unstructured.Unstructured) error {
		if !written[string(object.GetUID())] {
			return nil
		}
		if made := object.GetGenerateName(); made != "" {
			object.SetName(made + "*")
		}
		text, err := yaml.Marshal(timeless(object.Object))
		all = append(all, string(text))
		return err
	})
	slices.Sort(all)
	return strings.Join(all, "---\n"), err
}

// volatile are fields whose values are others in each world.
var volatile = map[string]bool{
	"uid": true, "resourceVersion": true, "creationTimestamp": true, "managedFields": true, "generation": true, "observedGeneration": true,
	"clusterIP": true, "clusterIPs": true, "nodePort": true, "podIP": true, "podIPs": true, "hostIP": true, "hostIPs": true,
}

// timeless leaves out what differs in each world, times included.
func timeless(value any) any {
	switch value := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for key, field := range value {
			if !volatile[key] {
				kept[key] = timeless(field)
			}
		}
		return kept
	case []any:
		kept := make([]any, len(value))
		for i, item := range value {
			kept[i] = timeless(item)
		}
		return kept
	case string:
		if _, err := time.Parse(time.RFC3339, value); err == nil {
			return "a time"
		}
	}
	return value
}

// differingLines are the lines that only one of two states has.
func differingLines(calm, other string) string {
	var lines []string
	lines = appendMissing(lines, "- ", calm, other)
	lines = appendMissing(lines, "+ ", other, calm)
	if len(lines) > shownLines {
		lines = append(lines[:shownLines], "…")
	}
	return strings.Join(lines, "\n")
}

// appendMissing adds the lines that one text has more often than the other.
func appendMissing(lines []string, mark, has, lacks string) []string {
	count := map[string]int{}
	for line := range strings.Lines(lacks) {
		count[line]++
	}
	for line := range strings.Lines(has) {
		if count[line]--; count[line] < 0 {
			lines = append(lines, mark+strings.TrimRight(line, "\n"))
		}
	}
	return lines
}
