package consistency

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
	"github.com/setpoint-io/setpoint/test/consistency/nemesis"
	"github.com/setpoint-io/setpoint/test/consistency/workload"
)

// A restorer is a Cluster that can be put back to an earlier day.
type restorer interface {
	Backup(file string) error
	Restore(file string) error
}

var (
	errGone  = errors.New("after the restore the objects are others than in the backup")
	errBack  = errors.New("after the restore a revision can be given out again")
	errKnown = errors.New("after the restore a watch goes on from a revision that never was")
)

// restore is an act of its own: a backup, a write after it, and all servers made anew of the backup.
// The objects must be those of the backup, and the revision beyond all that was ever
// given out, so that every client lists again.
func (r *run) restore(ctx context.Context) error {
	servers, can := r.Cluster.(restorer)
	if !can || !r.Restore {
		return nil
	}
	r.Log("restore: backup, one more write, and all servers anew")
	file := filepath.Join(r.Dir, "consistency.backup")
	namespace, kind := fmt.Sprintf("epoch-%d", r.epochs), workload.KindOf(r.epochs)
	before, err := workload.Look(ctx, r.Cluster, 0, kind, namespace, nemesis.SettleTimeout)
	if err != nil {
		return err
	}
	if err := errors.Join(servers.Backup(file), workload.Touch(ctx, r.Cluster, 0, "after-backup", nemesis.SettleTimeout)); err != nil {
		return err
	}
	last, err := workload.Look(ctx, r.Cluster, 0, kind, namespace, nemesis.SettleTimeout)
	if err != nil {
		return err
	}
	if err := errors.Join(servers.Restore(file), nemesis.Settle(ctx, r.Cluster)); err != nil {
		return err
	}
	for i := range r.Cluster.Size() {
		after, err := workload.Look(ctx, r.Cluster, i, kind, namespace, nemesis.SettleTimeout)
		switch {
		case err != nil:
			return err
		case !slices.Equal(before.Items, after.Items):
			return fmt.Errorf("%w: %v, were %v", errGone, after.Items, before.Items)
		case after.Revision <= last.Revision:
			return fmt.Errorf("%w: %d after %d", errBack, after.Revision, last.Revision)
		case !workload.Forgotten(ctx, r.Cluster, i, kind, namespace, last.Revision):
			return fmt.Errorf("%w: %d at %s", errKnown, last.Revision, cluster.Name(i))
		}
	}
	r.epoch(ctx, healLength)
	r.lookAtPods(ctx, "the restore")
	r.report.restored = true
	return nil
}
