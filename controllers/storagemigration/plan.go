package storagemigration

import (
	"cmp"
	"fmt"

	migrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

type migration = migrationv1.StorageVersionMigration

// Upstream's reasons.
const (
	runningReason   = "MigrationRunning"
	completedReason = "MigrationCompleted"
	succeededReason = "StorageVersionMigrationSucceeded"
	failedReason    = "StorageVersionMigrationFailed"
)

// plan is what is to be done with the migrations of one resource.
type plan struct {
	// finish have ended, but are still marked as running.
	finish []*migration
	// active is the one that runs; begin is the next, if none does.
	active, begin *migration
}

// planOf is pure.
func planOf(resource metav1.GroupResource, all []*migration) plan {
	var p plan
	for _, m := range all {
		running, ended := is(m, migrationv1.MigrationRunning), hasEnded(m)
		switch {
		case m.Spec.Resource != resource:
		case running && ended:
			p.finish = append(p.finish, m)
		case running && (p.active == nil || compare(m, p.active) < 0):
			p.active = m
		case !running && !ended && (p.begin == nil || compare(m, p.begin) < 0):
			p.begin = m
		}
	}
	if p.active != nil {
		p.begin = nil
	}
	return p
}

// compare orders migrations by age, then by name.
func compare(a, b *migration) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

func hasEnded(m *migration) bool {
	return is(m, migrationv1.MigrationSucceeded) || is(m, migrationv1.MigrationFailed)
}

func is(m *migration, kind migrationv1.MigrationConditionType) bool {
	return meta.IsStatusConditionTrue(m.Status.Conditions, string(kind))
}

// object is one that may have to be written again.
type object struct{ namespace, name, version string }

// isCandidate reports whether an object was last written before the migration began.
func isCandidate(o object, began string) (bool, error) {
	order, err := resourceversion.CompareResourceVersion(o.version, began)
	return err == nil && order <= 0, err
}

// progress counts objects.
type progress struct{ left, total int }

// message is that of the condition Running.
func (p progress) message(transient error) string {
	text := "The migration is running"
	switch {
	case p.total > 0 && p.left > 0:
		text += fmt.Sprintf(", %d/%d objects not yet migrated", p.left, p.total)
	case p.total > 0:
		text += fmt.Sprintf(", %d objects verified migrated", p.total)
	}
	if transient != nil {
		text += fmt.Sprintf("; transient error: %s", transient)
	}
	return text
}
