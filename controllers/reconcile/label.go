package reconcile

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/tools/cache"
)

// ByLabel files each object under each of its labels. With it List looks only at the objects with a label that the selector
// names, not at all of a namespace.
var ByLabel = Index{Name: "setpoint/label", Keys: func(o metav1.Object) []string {
	values := make([]string, 0, len(o.GetLabels()))
	for key, value := range o.GetLabels() {
		values = append(values, labelValue(o.GetNamespace(), key, value))
	}
	return values
}}

func labelValue(namespace, key, value string) string { return namespace + "/" + key + "=" + value }

// candidatesFew are so few that no other label of the selector is asked for fewer.
const candidatesFew = 16

// candidates finds by ByLabel some objects of a namespace, among them all that the selector chooses. It reports false if the
// selector asks of no label for a single value.
func candidates(indexer cache.Indexer, namespace string, selector labels.Selector) (fewest []any, found bool, err error) {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return nil, true, nil
	}
	for _, r := range requirements {
		values := r.Values()
		if values.Len() != 1 || !asksFor(r.Operator()) {
			continue
		}
		value, _ := values.PopAny()
		labelled, err := indexer.ByIndex(ByLabel.Name, labelValue(namespace, r.Key(), value))
		if err != nil {
			return nil, false, err
		}
		if !found || len(labelled) < len(fewest) {
			fewest, found = labelled, true
		}
		if len(fewest) <= candidatesFew {
			break
		}
	}
	return fewest, found, nil
}

// asksFor tells that an operator asks for one of its values.
func asksFor(o selection.Operator) bool {
	return o == selection.In || o == selection.Equals || o == selection.DoubleEquals
}
