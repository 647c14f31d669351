package storagemigration

import (
	"context"
	"fmt"
	"time"

	migrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

const (
	controllerName = "storage-version-migrator-controller"
	// workers is how many resources are migrated at once; upstream's.
	workers = 5
	// patience is how long a resource may be unknown, and looks how often it is looked for meanwhile.
	patience = time.Minute
	looks    = 10 * time.Second
)

var migrations = reconcile.KindOf[*migration](migrationv1.SchemeGroupVersion.WithResource("storageversionmigrations"))

// New migrates.
func New() reconcile.Controller {
	return reconcile.Controller{Name: controllerName, Reads: []reconcile.Read{migrations}, Run: run}
}

type controller struct {
	env        *reconcile.Env
	migrations reconcile.Cache[*migration]
}

// key is the resource: of its migrations one runs at a time.
type key = metav1.GroupResource

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{env, migrations.From(env)}
	return reconcile.Run(ctx, reconcile.ConfigOf[key]{
		Name:      "storagemigration",
		Reconcile: c.reconcile,
		Sources:   []reconcile.SourceOf[key]{reconcile.Changes(c.migrations, resourceOf)},
		Workers:   workers,
		Env:       env,
	})
}

func resourceOf(before, after metav1.Object) []key {
	changed := after
	if changed == nil {
		changed = before
	}
	return []key{changed.(*migration).Spec.Resource}
}

// reconcile does one step. The change of status that ends it brings the next.
func (c *controller) reconcile(ctx context.Context, resource key) (time.Duration, error) {
	all, err := c.migrations.List("", nil)
	if err != nil {
		return 0, err
	}
	p := planOf(resource, all)
	for _, m := range p.finish {
		if err := c.finish(reconcile.WithCause(ctx, m), m.DeepCopy()); err != nil {
			return 0, err
		}
	}
	switch {
	case p.begin != nil:
		return 0, c.begin(reconcile.WithCause(ctx, p.begin), p.begin.DeepCopy())
	case p.active == nil:
		return 0, nil
	case p.active.Status.ResourceVersion == "":
		return c.prepare(reconcile.WithCause(ctx, p.active), p.active.DeepCopy())
	}
	return c.migrate(reconcile.WithCause(ctx, p.active), p.active.DeepCopy())
}

// begin marks the migration, and the definition of its resource if that is custom.
func (c *controller) begin(ctx context.Context, m *migration) error {
	if err := c.markDefinition(ctx, m); err != nil {
		return err
	}
	return c.set(ctx, m, migrationv1.MigrationRunning, metav1.ConditionTrue, runningReason, progress{}.message(nil))
}

// finish takes the marks away.
func (c *controller) finish(ctx context.Context, m *migration) error {
	if err := c.releaseDefinition(ctx, m); err != nil {
		return err
	}
	return c.set(ctx, m, migrationv1.MigrationRunning, metav1.ConditionFalse, completedReason, "Migration completed")
}

// prepare writes down the version at which the migration begins.
func (c *controller) prepare(ctx context.Context, m *migration) (time.Duration, error) {
	found, err := c.discover(ctx, m.Spec.Resource)
	switch {
	case err != nil:
		return 0, err
	case found == nil:
		return c.waitFor(ctx, m, "resource does not exist in discovery")
	case !found.migratable:
		return 0, c.fail(ctx, m, fmt.Sprintf("resource %q does not support discovery operations: %v", found.String(), verbs))
	}
	version, err := c.latest(ctx, found)
	if err != nil {
		return 0, err
	}
	if _, err := resourceversion.CompareResourceVersion(version, version); err != nil {
		return 0, c.fail(ctx, m, fmt.Sprintf("latest resourceVersion for %s is not valid: %v", found, err))
	}
	m.Status.ResourceVersion = version
	return 0, c.write(ctx, m)
}

// waitFor gives a resource that nobody knows time to come, then fails.
func (c *controller) waitFor(ctx context.Context, m *migration, failure string) (time.Duration, error) {
	if left := m.CreationTimestamp.Add(patience).Sub(c.env.Now()); left > 0 {
		return min(left, looks), nil
	}
	return 0, c.fail(ctx, m, failure)
}

func (c *controller) fail(ctx context.Context, m *migration, message string) error {
	return c.set(ctx, m, migrationv1.MigrationFailed, metav1.ConditionTrue, failedReason, message)
}

// set writes one condition, if it is another than before.
func (c *controller) set(
	ctx context.Context,
	m *migration,
	kind migrationv1.MigrationConditionType,
	status metav1.ConditionStatus,
	reason, message string,
) error {
	if !c.put(m, kind, status, reason, message) {
		return nil
	}
	return c.write(ctx, m)
}

// put changes a condition and reports whether it was another.
func (c *controller) put(
	m *migration,
	kind migrationv1.MigrationConditionType,
	status metav1.ConditionStatus,
	reason, message string,
) bool {
	condition := metav1.Condition{Type: string(kind), Status: status, Reason: reason, Message: message}
	condition.LastTransitionTime = metav1.NewTime(c.env.Now())
	if status == metav1.ConditionFalse {
		condition.ObservedGeneration = m.Generation
	}
	return meta.SetStatusCondition(&m.Status.Conditions, condition)
}

func (c *controller) write(ctx context.Context, m *migration) error {
	_, err := c.env.Client.StoragemigrationV1().StorageVersionMigrations().UpdateStatus(ctx, m, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("status of migration %s: %w", m.Name, err)
	}
	return nil
}
