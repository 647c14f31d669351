package apps

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// The annotation is how clients of old saw which template a pod was made from.
func TestDaemonSetCountsItsTemplates(t *testing.T) {
	old := &appsv1.DaemonSet{}
	daemonSets().PrepareCreate(old)
	same, changed := old.DeepCopy(), old.DeepCopy()
	same.Annotations = nil
	changed.Spec.Template.Labels = map[string]string{"a": "b"}
	changed.Annotations[appsv1.DeprecatedTemplateGeneration] = "9"
	for name, test := range map[string]struct {
		set  *appsv1.DaemonSet
		want int64
	}{"unchanged": {same, 1}, "changed": {changed, 2}} {
		prepareDaemonSetUpdate(test.set, old)
		if got := templateGeneration(test.set); got != test.want {
			t.Errorf("%s: template generation = %d, want %d", name, got, test.want)
		}
	}
}
