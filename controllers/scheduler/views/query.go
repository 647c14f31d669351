package views

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Query selects pods by their namespace and labels.
type Query struct {
	// Namespaces are those whose pods it selects, besides those that InNamespaces selects by their labels (nil: no others).
	Namespaces   []string
	InNamespaces labels.Selector
	Labels       labels.Selector
}

// Matches tells whether the query selects a pod. namespaceLabels is asked only if the query selects by them.
func (q *Query) Matches(namespace string, set labels.Set, namespaceLabels func(string) labels.Set) bool {
	return q.Labels.Matches(set) && q.inNamespace(namespace, namespaceLabels)
}

func (q *Query) inNamespace(namespace string, namespaceLabels func(string) labels.Set) bool {
	if slices.Contains(q.Namespaces, namespace) {
		return true
	}
	if q.InNamespaces == nil {
		return false
	}
	return q.InNamespaces.Empty() || q.InNamespaces.Matches(namespaceLabels(namespace))
}

// ID is the same for queries that select the same pods by the same words.
func (q *Query) ID() string {
	id := strings.Join(q.Namespaces, ",") + "/"
	if q.InNamespaces != nil {
		id += "in " + selectorID(q.InNamespaces)
	}
	return id + "/" + selectorID(q.Labels)
}

// selectorID tells apart the selectors of everything and of nothing, whose texts are both empty.
func selectorID(s labels.Selector) string {
	if _, selectable := s.Requirements(); !selectable {
		return "nothing"
	}
	return "{" + s.String() + "}"
}

// spot is where queries are found that demand a label value of the pods of a namespace. An empty namespace stands for all, an
// empty key for queries that demand no value.
type spot struct{ namespace, key, value string }

// spots are those under which the query may be kept.
func (q *Query) spots() []spot {
	namespace := ""
	if len(q.Namespaces) == 1 && q.InNamespaces == nil {
		namespace = q.Namespaces[0]
	}
	var found []spot
	requirements, _ := q.Labels.Requirements()
	for _, r := range requirements {
		demands := r.Operator() == selection.Equals || r.Operator() == selection.DoubleEquals || r.Operator() == selection.In
		if values := r.ValuesUnsorted(); demands && len(values) == 1 {
			found = append(found, spot{namespace, r.Key(), values[0]})
		}
	}
	if len(found) == 0 {
		found = append(found, spot{namespace: namespace})
	}
	return found
}

// index finds the queries that may select a pod without asking all of them.
type index[T comparable] map[spot][]T

// add keeps t under the emptiest of the spots, and gives it.
func (x index[T]) add(spots []spot, t T) spot {
	best := slices.MinFunc(spots, func(a, b spot) int { return len(x[a]) - len(x[b]) })
	x[best] = append(x[best], t)
	return best
}

func (x index[T]) remove(s spot, t T) {
	list := x[s]
	i := slices.Index(list, t)
	if len(list) == 1 {
		delete(x, s)
		return
	}
	list[i] = list[len(list)-1]
	x[s] = slices.Delete(list, len(list)-1, len(list))
}

// each visits what may select a pod, each once.
func (x index[T]) each(namespace string, set labels.Set, visit func(T)) {
	if len(x) == 0 {
		return
	}
	visitAll := func(s spot) {
		for _, t := range x[s] {
			visit(t)
		}
	}
	for key, value := range set {
		visitAll(spot{namespace, key, value})
		visitAll(spot{"", key, value})
	}
	visitAll(spot{namespace: namespace})
	visitAll(spot{})
}
