package replica

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/raftstore/replica/birth"
	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// NextLife is where the log of a cluster begins again: with one snapshot.
type NextLife struct {
	// ServerID is whose data directory it is, and one of Servers.
	ServerID string
	// Servers are the members of the new configuration. Those without a vote may come back with the former life's state or with none.
	Servers []ServerStatus
	// Root is the state to begin with.
	Root *state.Root
	// ClusterID is the identity of the cluster from now on; "" lets the first leader name it.
	ClusterID string
	// Life names it. FormerLife is the one that it ends, whose servers give way to it;
	// "" for a restore, whose servers are all made anew.
	Life, FormerLife string
	// Backup tells what it is restored from; see Found.
	Backup string
	// LastIndex and LastTerm are where the log of the former life ended.
	LastIndex, LastTerm uint64
	// Begins is the time.
	Begins time.Time
}

// Revision is the one that it begins with.
func (n *NextLife) Revision() uint64 {
	return birth.Revision(n.Root.Revision, n.Begins)
}

// Found writes the beginning of a cluster's next life into an empty storage. Of several
// servers that restore a backup, the first of Servers alone gets the data: the others
// note that they take part, and begin with it as voters that have not voted yet. So one
// life comes of it, and each server counts once, whenever and however often it was
// restored. Errors wrap ErrHasState if the storage is not empty.
func (n *NextLife) Found(ctx context.Context, disk Disk) error {
	return withDisk(ctx, disk, func(storage *Storage) error {
		e := newExaminer(storage)
		mark, err := storage.marks.Load()
		if err != nil {
			return err
		}
		if err := guarded(ctx, storage.sizeBytes(), e.verify); err != nil {
			return err
		}
		// One that is fresh waited for its peers and never voted.
		if e.last > 0 || mark != nil && mark.State != marks.Fresh {
			return ErrHasState
		}
		next := &marks.Marker{ServerID: n.ServerID, ClusterID: n.ClusterID}
		if len(n.Servers) > 1 {
			next.State, next.Nonce, next.Backup = marks.Restored, randomHex(nonceBytes), n.Backup
		}
		if n.HasData() {
			next.Life = n.Life
			if err := n.write(e); err != nil {
				return err
			}
		}
		return storage.marks.Save(next)
	})
}

// HasData reports whether it is this server that Found gives the data.
func (n *NextLife) HasData() bool { return n.Servers[0].ID == n.ServerID }

// Replace puts the beginning of a cluster's next life in the place of what the
// storage holds. A crash leaves either the one or the other.
func (n *NextLife) Replace(ctx context.Context, disk Disk) error {
	return withDisk(ctx, disk, func(storage *Storage) error {
		e := newExaminer(storage)
		if err := guarded(ctx, storage.sizeBytes(), e.verify); err != nil {
			return err
		}
		if e.last != n.LastIndex || e.lastTerm != n.LastTerm {
			return fmt.Errorf("%w: it has changed meanwhile", ErrHasState)
		}
		n.LastTerm = max(n.LastTerm, e.term)
		if err := n.write(e); err != nil {
			return err
		}
		if err := n.deleteLog(e); err != nil {
			return err
		}
		// The marker may be of the former life until then: the snapshot says that it
		// ended that one.
		return storage.marks.Save(&marks.Marker{ServerID: n.ServerID, ClusterID: n.ClusterID, Life: n.Life})
	})
}

func (n *NextLife) deleteLog(e *examiner) error {
	first, err := e.log.FirstIndex()
	if err != nil || first == 0 {
		return err
	}
	return e.log.DeleteRange(first, e.log.last.Load())
}

// write stores term and snapshot, or gives a disk in memory the state itself. The term comes first: it is harmless alone.
func (n *NextLife) write(e *examiner) error {
	index, term := birth.Index(n.LastIndex, n.Begins), birth.Term(n.LastTerm, n.Begins)
	snapshot, ok := n.Root.Rebirth(state.Birth{
		Index: index, Revision: n.Revision(), ClusterID: n.ClusterID, Life: n.Life, FormerLife: n.FormerLife,
	})
	if !ok {
		return fmt.Errorf("revision %d has no room for a later one", n.Root.Revision)
	}
	if err := e.stable.SetUint64([]byte("CurrentTerm"), term); err != nil {
		return err
	}
	if n.ClusterID != "" {
		if err := e.stable.Set(clusterIDKey, []byte(n.ClusterID)); err != nil {
			return err
		}
	}
	sink, err := e.storage.snapshots.Create(raft.SnapshotVersionMax, index, term, n.configuration(), index, addressEncoder{})
	if err != nil {
		return fmt.Errorf("writing snapshot: %w", err)
	}
	if h, ok := sink.(holder); ok && h.hold(snapshot) {
		return sink.Close()
	}
	if _, err := snapshot.WriteTo(sink); err != nil {
		return fmt.Errorf("writing snapshot: %w", joinCancel(err, sink))
	}
	return sink.Close()
}

func (n *NextLife) configuration() (c raft.Configuration) {
	for _, s := range n.Servers {
		suffrage := raft.Nonvoter
		if s.Voter {
			suffrage = raft.Voter
		}
		c.Servers = append(c.Servers, raft.Server{Suffrage: suffrage, ID: raft.ServerID(s.ID), Address: raftAddress(s.Server)})
	}
	return c
}

// addressEncoder is all that a snapshot store asks of a transport.
type addressEncoder struct{ raft.Transport }

// EncodePeer implements raft.Transport.
func (addressEncoder) EncodePeer(_ raft.ServerID, address raft.ServerAddress) []byte {
	return []byte(address)
}
