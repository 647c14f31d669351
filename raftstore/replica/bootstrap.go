package replica

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
)

// openLimit bounds reading the log at start, beside the time that a disk of slowBytes a second
// takes: a damaged file may make the database search without end.
const (
	openLimit = 10 * time.Second
	slowBytes = 512 << 10
)

// clusterIDKey is where the stable store keeps which cluster's data this is.
var clusterIDKey = []byte("setpoint/cluster-id")

// inspect verifies all that is stored before raft sees it, and reports whether there is a log. Raft panics on
// an entry it cannot read; here the same becomes one clear error.
func (r *Replica) inspect(ctx context.Context) (exists bool, err error) {
	err = guarded(ctx, r.cfg.Storage.sizeBytes(), func() error {
		exists, err = r.inspectStored()
		return err
	})
	return exists, err
}

func (r *Replica) inspectStored() (exists bool, err error) {
	snapshots, err := r.cfg.Storage.snapshots.List()
	if err != nil {
		return false, fmt.Errorf("listing snapshots: %w", err)
	}
	var snapshotIndex uint64
	var newest *raft.SnapshotMeta
	if len(snapshots) > 0 {
		newest, snapshotIndex = snapshots[0], snapshots[0].Index
	}
	if err := r.log.verifyAll(snapshotIndex); err != nil {
		return false, err
	}
	last, err := r.log.LastIndex()
	if err != nil {
		return false, err
	}
	// A term alone is no state: a founder that was interrupted has one. But a log
	// that vanished beside a term must not pass for a new server.
	exists = last > 0 || len(snapshots) > 0
	mark, err := r.cfg.Storage.marks.Load()
	if err != nil {
		return false, err
	}
	if err := r.checkIdentity(mark); err != nil {
		return false, err
	}
	if err := r.adopt(mark, exists); err != nil {
		return false, err
	}
	return exists, r.checkReach(newest)
}

// adopt takes the marker for what is stored, or says why they do not agree.
func (r *Replica) adopt(mark *marks.Marker, exists bool) error {
	switch {
	case mark != nil && (mark.State == marks.Damaged || mark.State == marks.Discarding):
		r.remember(mark)
		return fmt.Errorf("%w: noticed while it was in use", ErrCorrupt)
	case exists && mark == nil:
		// The last start ended between its first write and the marker.
		id, err := r.stable.Writer()
		if err != nil {
			return err
		}
		return r.saveMark(&marks.Marker{ServerID: cmp.Or(id, r.cfg.ID), ClusterID: r.cfg.ClusterID})
	case mark != nil && mark.State == marks.Restored:
		r.remember(mark)
		if mark.Life != "" && !exists {
			return ErrStateLost
		}
	case exists && mark.State != marks.Held:
		return r.saveMark(mark.With(marks.Held))
	case !exists && mark != nil && mark.State == marks.Held:
		return ErrStateLost
	case mark != nil:
		r.remember(mark)
	}
	return nil
}

// memberID is the id of the marker, or the one that a founder will have.
func (r *Replica) memberID() string {
	if mark := r.marked(); mark != nil {
		return mark.ServerID
	}
	return r.cfg.ID
}

// checkIdentity compares who wrote the data with who opens it.
func (r *Replica) checkIdentity(mark *marks.Marker) error {
	if mark != nil && MemberName(mark.ServerID) != r.cfg.ID {
		return fmt.Errorf("%w: it belongs to server %q, this is %q", ErrForeignData, MemberName(mark.ServerID), r.cfg.ID)
	}
	if err := checkWriter(r.stable, r.cfg.ID, mark); err != nil {
		return err
	}
	if r.cfg.ClusterID == "" {
		return nil
	}
	if mark != nil && mark.ClusterID != "" && mark.ClusterID != r.cfg.ClusterID {
		return fmt.Errorf("%w: marker of cluster %q, this is %q", ErrForeignData, mark.ClusterID, r.cfg.ClusterID)
	}
	stored, err := r.stable.Get(clusterIDKey)
	if err != nil && !isNotFound(err) {
		return err
	}
	if len(stored) > 0 && string(stored) != r.cfg.ClusterID {
		return fmt.Errorf("%w: log of cluster %q, this is %q", ErrForeignData, stored, r.cfg.ClusterID)
	}
	if len(stored) == 0 {
		return r.stable.Set(clusterIDKey, []byte(r.cfg.ClusterID))
	}
	return nil
}

// guarded runs f, which reads so many bytes, with a time limit, and makes panics and memory
// faults (a file shorter than its map) errors.
func guarded(ctx context.Context, bytes int64, f func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openLimit+time.Duration(bytes/slowBytes)*time.Second, ErrOpenTimeout)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- caught(f) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// found writes the first log entry, the list of founders. It is the same on each.
func (r *Replica) found(conf *raft.Config) error {
	switch term, err := r.storedTerm(); {
	case err != nil:
		return err
	case term == 1:
		// An earlier start ended after the term and before the entry.
		return r.log.StoreLog(&raft.Log{
			Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(r.initialConfiguration()),
		})
	}
	return raft.BootstrapCluster(conf, r.log, r.stable, r.cfg.Storage.snapshots, r.transport, r.initialConfiguration())
}

// storedTerm is the term on disk, 0 if there is none. It fails where raft must
// have run: a term above 1 has no log only if the log was lost.
func (r *Replica) storedTerm() (uint64, error) {
	term, err := r.stable.GetUint64([]byte("CurrentTerm"))
	switch {
	case err != nil && !isNotFound(err):
		return 0, err
	case term > 1:
		return 0, fmt.Errorf("%w: in term %d without a log", ErrStateLost, term)
	}
	return term, nil
}

func (r *Replica) isFounder() bool {
	for _, s := range r.cfg.InitialServers {
		if s.ID == r.cfg.ID {
			return true
		}
	}
	return false
}

// hasPeers reports whether the operator named other servers.
func (r *Replica) hasPeers() bool {
	for _, s := range r.cfg.InitialServers {
		if s.ID != r.cfg.ID {
			return true
		}
	}
	return false
}

func (r *Replica) initialConfiguration() raft.Configuration {
	var c raft.Configuration
	for _, s := range r.cfg.InitialServers {
		c.Servers = append(c.Servers, raft.Server{
			Suffrage: raft.Voter, ID: raft.ServerID(s.ID), Address: raft.ServerAddress(s.Address),
		})
	}
	return c
}

// operatorAddress is where the operator's current list says a server is, or "". It wins over the replicated
// configuration: if all addresses changed at once, nobody could elect the leader who would record the new
// ones.
func (r *Replica) operatorAddress(name string) string {
	for _, s := range r.cfg.InitialServers {
		if s.ID == name {
			return s.Address
		}
	}
	return ""
}
