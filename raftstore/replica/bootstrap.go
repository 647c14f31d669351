package replica

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"
)

// openLimit bounds reading the log at start: a damaged file may make the database
// search without end.
const openLimit = 10 * time.Second

var clusterIDKey = []byte("setpoint/cluster-id")

// inspect verifies all that is stored before raft sees it, and reports whether
// there was nothing. Raft panics on a log entry it cannot read; here the same
// becomes one clear error.
func (r *Replica) inspect(ctx context.Context, stable *checkedStable) (fresh bool, err error) {
	err = guarded(ctx, func() error {
		fresh, err = r.inspectStored(stable)
		return err
	})
	return fresh, err
}

func (r *Replica) inspectStored(stable *checkedStable) (fresh bool, err error) {
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
	exists := last > 0 || len(snapshots) > 0
	mark, err := r.cfg.Storage.marker.load()
	if err != nil {
		return false, err
	}
	if err := r.checkIdentity(mark, stable); err != nil {
		return false, err
	}
	if mark != nil && !exists {
		return false, ErrStateLost
	}
	if err := r.checkReach(stable, newest); err != nil {
		return false, err
	}
	if exists && mark == nil {
		// The last start ended between its first write and the marker.
		return false, r.saveMarker()
	}
	return !exists, nil
}

// checkIdentity compares who wrote the data with who opens it.
func (r *Replica) checkIdentity(mark *marker, stable *checkedStable) error {
	if mark != nil && mark.ServerID != r.cfg.ID {
		return fmt.Errorf("%w: it belongs to server %q, this is %q", ErrForeignData, mark.ServerID, r.cfg.ID)
	}
	if r.cfg.ClusterID == "" {
		return nil
	}
	if mark != nil && mark.ClusterID != "" && mark.ClusterID != r.cfg.ClusterID {
		return fmt.Errorf("%w: marker of cluster %q, this is %q", ErrForeignData, mark.ClusterID, r.cfg.ClusterID)
	}
	stored, err := stable.Get(clusterIDKey)
	if err != nil && !isNotFound(err) {
		return err
	}
	if len(stored) > 0 && string(stored) != r.cfg.ClusterID {
		return fmt.Errorf("%w: log of cluster %q, this is %q", ErrForeignData, stored, r.cfg.ClusterID)
	}
	if len(stored) == 0 {
		return stable.Set(clusterIDKey, []byte(r.cfg.ClusterID))
	}
	return nil
}

// guarded runs f with a time limit, and makes panics and memory faults (a file
// shorter than its map) errors.
func guarded(ctx context.Context, f func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, openLimit, ErrOpenTimeout)
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
func (r *Replica) found(conf *raft.Config, stable *checkedStable) error {
	first := &raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(r.initialConfiguration())}
	switch term, err := stable.GetUint64([]byte("CurrentTerm")); {
	case err != nil && !isNotFound(err):
		return err
	case term > 1:
		return fmt.Errorf("%w: in term %d without a log", ErrStateLost, term)
	case term == 1:
		// An earlier start ended after the term and before the entry.
		return r.log.StoreLog(first)
	}
	return raft.BootstrapCluster(conf, r.log, stable, r.cfg.Storage.snapshots, r.transport, r.initialConfiguration())
}

func (r *Replica) isFounder() bool {
	for _, s := range r.cfg.InitialServers {
		if s.ID == r.cfg.ID {
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

// addressOf finds where a server is reached now: the replicated configuration if
// raft runs, else the founders' list.
func (r *Replica) addressOf(id raft.ServerID) (raft.ServerAddress, error) {
	if instance := r.running.Load(); instance != nil {
		for _, s := range instance.GetConfiguration().Configuration().Servers {
			if s.ID == id {
				return s.Address, nil
			}
		}
	}
	for _, s := range r.cfg.InitialServers {
		if s.ID == string(id) {
			return raft.ServerAddress(s.Address), nil
		}
	}
	return "", errors.New("server is not in the configuration")
}
