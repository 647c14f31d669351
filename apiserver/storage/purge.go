package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

const (
	// purgePool is that of the claims that say which objects were purged: a write as any other, so it is in the log, in snapshots and in
	// backups, and a server that was away gets it with the rest.
	purgePool = "purges"
	// purgesMax is how many purges are kept, each for history.PurgesKept; purgesEndedMax how many that are older one write removes.
	purgesMax      = 10_000
	purgesEndedMax = 100
	// purgeAttempts bounds how often a purge is tried that meets another.
	purgeAttempts = 8
)

// PurgesFolder is where the store has purges: history.Config.Purges.
func PurgesFolder() string { return ClaimKey(purgePool, "") }

func purgeKey(key string) string { return ClaimKey(purgePool, strings.TrimPrefix(key, "/")) }

// purge is what is stored of one.
type purge struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

func purgeOf(rec *record.Record) (p purge) {
	if len(rec.Value) > 0 {
		_ = json.Unmarshal(rec.Value[1:], &p) // without it nobody is named
	}
	return p
}

// Purge removes what an object was up to now, on all servers; what it is stays. It returns the revision of the purge. The origin of the
// context names who does it.
func (t *Table) Purge(ctx context.Context, namespace, name string) (uint64, error) {
	for range purgeAttempts {
		root, err := t.store.log.ReadIndex(ctx)
		if err != nil {
			return 0, unavailable(err)
		}
		if root.FeatureLevel < raftstore.PurgesLevel {
			return 0, apierrors.NewServiceUnavailable(fmt.Sprintf("the cluster has feature level %d, and at %d all servers can purge: "+
				"upgrade them all, see 'setpoint upgrade', and try again", root.FeatureLevel, raftstore.PurgesLevel))
		}
		c, err := t.purgeCommand(ctx, root, t.key(namespace, name))
		if err != nil {
			return 0, err
		}
		result, err := t.store.log.Propose(ctx, c)
		switch {
		case err != nil:
			return 0, unavailable(err)
		case result.Code == command.OK:
			return t.purgedAt(ctx, namespace, name)
		case result.Code != command.PreconditionFailed:
			return 0, apierrors.NewInternalError(fmt.Errorf("the store answered %s: %s", result.Code, result.Message))
		}
	}
	return 0, apierrors.NewServiceUnavailable("other purges are under way: try again")
}

// purgeCommand puts the purge, and removes some that are kept for long enough.
func (t *Table) purgeCommand(ctx context.Context, root *state.Root, key string) (command.Command, error) {
	now := t.store.Now()
	value, err := json.Marshal(purge{OriginFrom(ctx).User, now.UTC()})
	if err != nil {
		return command.Command{}, err
	}
	c := command.Command{Ops: []command.Op{{
		Kind: command.Put, Key: purgeKey(key), UID: string(uuid.NewUUID()), Value: append([]byte{command.EncodingJSON}, value...),
		Precondition: command.Any,
	}}}
	for rec := range root.All(PurgesFolder()) {
		if len(c.Ops) > purgesEndedMax {
			break
		}
		if rec.Key != purgeKey(key) && now.Sub(purgeOf(rec).At) > history.PurgesKept {
			c.Ops = append(c.Ops, command.Op{
				Kind: command.Delete, Key: rec.Key, UID: rec.UID, Precondition: command.AtRevision, Revision: rec.ModRevision,
			})
		}
	}
	if root.Count(PurgesFolder()) >= purgesMax+len(c.Ops)-1 {
		reason := fmt.Sprintf("%d purges are kept, each for %d days: try again later", purgesMax, history.PurgesKept/(24*time.Hour))
		return c, apierrors.NewTooManyRequests(reason, 0)
	}
	OriginFrom(ctx).stamp(&c)
	return c, nil
}

// purgedAt is the revision of the purge that was just made.
func (t *Table) purgedAt(ctx context.Context, namespace, name string) (uint64, error) {
	root, err := t.store.log.ReadIndex(ctx)
	if err != nil {
		return 0, unavailable(err)
	}
	rec, ok := root.Get(purgeKey(t.key(namespace, name)))
	if !ok {
		return 0, nil
	}
	return rec.ModRevision, nil
}

// A purgedError says that what was asked for is removed. Without a revision the purge itself is no longer kept.
type purgedError struct {
	key      string
	revision uint64
	purge    purge
}

// Error implements error.
func (e *purgedError) Error() string {
	gr, _ := resourceOf(e.key)
	_, name := nameOf(e.key)
	if e.revision == 0 {
		return fmt.Sprintf("what %s %q was then was purged", gr, name)
	}
	return fmt.Sprintf("what %s %q was before resourceVersion %d was purged by %s at %s",
		gr, name, e.revision, e.purge.By, e.purge.At.Format(time.RFC3339))
}

// unpurged refuses what was under a prefix at a revision if something of it was purged since: values that were there then, and are not any
// more. It asks the newest state of this replica, after the past was read: rootOf has waited for what was acknowledged before.
func (s *Store) unpurged(past *state.Root, prefix string, revision uint64) error {
	now := s.log.Root()
	for rec := range now.All(purgeKey(prefix)) {
		key := "/" + strings.TrimPrefix(rec.Key, PurgesFolder())
		if rec.ModRevision <= revision || !isUnder(prefix, key) {
			continue
		}
		was, found := past.Get(key)
		if is, still := now.Get(key); found && (!still || is.ModRevision != was.ModRevision) {
			return &outOfReach{&purgedError{key, rec.ModRevision, purgeOf(rec)}}
		}
	}
	return nil
}

// emptied refuses what history has under a prefix if a value of it is empty: it was purged, and history is kept for longer than the purge.
func emptied(past *state.Root, prefix string) error {
	for rec := range past.All(prefix) {
		if len(rec.Value) == 0 && isUnder(prefix, rec.Key) {
			return &outOfReach{&purgedError{key: rec.Key}}
		}
	}
	return nil
}

// isUnder reports whether a key is the one that a prefix names, or in the folder that it is.
func isUnder(prefix, key string) bool { return key == prefix || strings.HasSuffix(prefix, "/") }

// purgedSince reports whether something under a prefix was purged after a revision: who goes on from there must not get the values that
// came before. It asks what this replica has: a watch goes on where there is no leader, too.
func (s *Store) purgedSince(prefix string, revision uint64) bool {
	for rec := range s.log.Root().All(purgeKey(prefix)) {
		if rec.ModRevision > revision {
			return true
		}
	}
	return false
}
