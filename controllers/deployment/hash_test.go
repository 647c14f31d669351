package deployment

import (
	"testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/revisions"
)

// The hash names ReplicaSets that exist in clusters: were it to change, every
// Deployment would roll out again on an upgrade.
func TestTemplateHashNeverChanges(t *testing.T) {
	template := newDeployment(1, 1, 0).Spec.Template
	for _, c := range []struct {
		name       string
		collisions *int32
		want       string
	}{
		{"plain", nil, "59dc47d8b8"},
		{"no collision yet", new(int32), "59c67bb9f6"},
		{"one collision", new(int32(1)), "757f46f469"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := revisions.TemplateHash(template.DeepCopy(), c.collisions); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
