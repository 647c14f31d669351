package raftstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/replica"
	"github.com/setpoint-io/setpoint/raftstore/replica/birth"
)

// ErrBehind: another server that survives has a newer log.
var ErrBehind = errors.New("another server has a newer log")

// Stored is what a server that does not run has on its disk.
type Stored = replica.Stored

// Examine reads and verifies the data directory of a server that does not run, and
// changes nothing. Errors wrap ErrNoState, ErrCorrupt, ErrStateLost or ErrDiverged.
func Examine(ctx context.Context, dir string, logger *slog.Logger) (*Stored, error) {
	return replica.ExamineFiles(ctx, dir, logger)
}

// Newer reports whether a's log is newer than b's: then it has everything that was
// acknowledged and b has.
func Newer(a, b *Stored) bool {
	if a.LastTerm != b.LastTerm {
		return a.LastTerm > b.LastTerm
	}
	return a.LastIndex > b.LastIndex
}

// CheckNewest refuses, with ErrBehind, if one of the other survivors has a newer log.
func CheckNewest(stored *Stored, others []*Stored) error {
	for _, other := range others {
		if Newer(other, stored) {
			return fmt.Errorf("%w: %s ends at entry %d of term %d, this one at entry %d of term %d: recover from %s",
				ErrBehind, other.ServerID, other.LastIndex, other.LastTerm, stored.LastIndex, stored.LastTerm, other.ServerID)
		}
	}
	return nil
}

// Recover gives the server whose data directory was examined the only vote of its
// cluster, at address, host:port. Whatever the lost majority had acknowledged and
// this server never got, is lost. A new life of the cluster begins, at the time now. The
// others stay members without a vote: with an empty data directory they get this server's
// state and then their vote; with data of the former life they stop when this server
// calls them, and when started again set those aside. It refuses, with ErrBehind, if
// another survivor has a newer log. It returns the revision that the store begins with.
func Recover(
	ctx context.Context,
	dir, address string,
	stored *Stored,
	others []*Stored,
	now time.Time,
	logger *slog.Logger,
) (revision uint64, err error) {
	if err := CheckNewest(stored, others); err != nil {
		return 0, err
	}
	if level := stored.Root.FeatureLevel; level > FeatureLevel {
		return 0, levelError(level, FeatureLevel)
	}
	life := replica.NextLife{
		ServerID: stored.ServerID, Servers: survivors(stored, address),
		Root: stored.Root, ClusterID: stored.ClusterID, Life: birth.Name(), FormerLife: stored.Root.Life,
		LastIndex: stored.LastIndex, LastTerm: stored.LastTerm, Begins: now,
	}
	if err := life.Replace(ctx, replica.Files{Dir: dir, Logger: logger}); err != nil {
		return 0, err
	}
	return life.Revision(), nil
}

// survivors is the configuration after a recovery.
func survivors(stored *Stored, address string) []ServerStatus {
	members := []ServerStatus{{Server: Server{ID: stored.ServerID, Address: address}, Voter: true}}
	for _, server := range stored.Servers {
		if server.ID != stored.ServerID {
			members = append(members, ServerStatus{Server: server.Server})
		}
	}
	return members
}
