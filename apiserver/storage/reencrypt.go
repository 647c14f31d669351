package storage

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

const (
	// reencryptPause is the least time between two writes of Reencrypt: clients go first.
	reencryptPause = 5 * time.Millisecond
	// unreadableLimit ends a look at objects that cannot be read: each may cost a call of
	// a plugin that does not answer.
	unreadableLimit = 1000
	// changesLimit is how many changes are looked at to find that a report still holds: with more it is made anew.
	changesLimit = 1000
)

// EncryptionReport says how the objects of this replica are kept that are or should be
// encrypted.
type EncryptionReport struct {
	// Revision and Generation are those of what was looked at.
	Revision, Generation uint64
	// Objects is how many there are.
	Objects int
	// Outdated are readable, but not kept as they would be written now: not encrypted yet,
	// or by a former key.
	Outdated int
	// Unreadable cannot be decrypted here; Problem says why, of the first. At
	// unreadableLimit the look ends.
	Unreadable int
	Problem    string
	// Waiting: values are not encrypted before all servers can read them.
	Waiting bool
}

// EncryptionTurned reports that objects are written in another way since the report was
// made. A plugin may have another key all the same.
func (s *Store) EncryptionTurned(since *EncryptionReport) bool {
	seals := s.codec.seals
	return since.Generation != seals.Generation() || since.Waiting != !seals.active()
}

// EncryptedChanged reports whether an object that is or should be encrypted changed since the report was made, or may
// have: what is renewed all day, such as Leases, makes no report old.
func (s *Store) EncryptedChanged(since *EncryptionReport) bool {
	now := s.log.Root().Revision
	if now > since.Revision+changesLimit {
		return true
	}
	for revision := since.Revision + 1; revision <= now; revision++ {
		event, ok := s.log.EventAt(revision)
		if !ok {
			return true
		}
		gr, object := resourceOf(event.Key)
		if object && (s.codec.seals.concerned(gr, event.Prev) || s.codec.seals.concerned(gr, event.Record)) {
			return true
		}
	}
	return false
}

// InspectEncryption looks at all objects of this replica, without keeping them decoded. A
// replica that has just started catches up first: nothing to do would be said too early.
func (s *Store) InspectEncryption(ctx context.Context) (*EncryptionReport, error) {
	root, err := s.recent(ctx)
	if err != nil {
		return nil, err
	}
	report, _, err := s.inspect(ctx, root)
	return report, err
}

// Reencrypt writes every outdated object again, unchanged, each if it is then still what
// was read. It returns how many there were that it could not write: somebody else was
// faster, or the store did not take them. Its writes carry the context's origin.
func (s *Store) Reencrypt(ctx context.Context) (left int, err error) {
	root, err := s.log.ReadIndex(ctx)
	if err != nil || !s.codec.seals.active() {
		return 0, err
	}
	_, outdated, err := s.inspect(ctx, root)
	if err != nil {
		return 0, err
	}
	pause := time.NewTicker(reencryptPause)
	defer pause.Stop()
	for i, r := range outdated {
		select {
		case <-ctx.Done():
			return len(outdated) - i, ctx.Err()
		case <-pause.C:
		}
		done, err := s.reencrypt(ctx, r)
		if err != nil {
			return left + len(outdated) - i, err
		}
		if !done {
			left++
		}
	}
	return left, nil
}

// reencrypt writes one object as it would be written now. It reports false if the object
// has been changed since it was read.
func (s *Store) reencrypt(ctx context.Context, r *record.Record) (done bool, err error) {
	gr, _ := resourceOf(r.Key)
	plain, _, err := s.codec.seals.open(gr, r)
	if err != nil {
		return false, err
	}
	op := command.Op{Kind: command.Put, Key: r.Key, UID: r.UID, Precondition: command.AtRevision, Revision: r.ModRevision}
	if op.Value, err = s.codec.seals.seal(ctx, gr, r.Key, plain); err != nil {
		return false, err
	}
	c := command.Command{Ops: []command.Op{op}}
	OriginFrom(ctx).stamp(&c)
	result, err := s.log.Propose(ctx, c)
	switch {
	case err != nil:
		return false, unavailable(err)
	case result.Code == command.FenceStale:
		return false, fenceStale()
	default:
		return result.Code == command.OK, nil
	}
}

// inspect returns the outdated records beside the report.
func (s *Store) inspect(ctx context.Context, root *state.Root) (*EncryptionReport, []*record.Record, error) {
	seals := s.codec.seals
	report := &EncryptionReport{Revision: root.Revision, Generation: seals.Generation(), Waiting: !seals.active()}
	var outdated []*record.Record
	for r := range root.All("/") {
		gr, object := resourceOf(r.Key)
		if !object || !seals.concerned(gr, r) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		report.Objects++
		_, old, err := seals.open(gr, r)
		switch {
		case err != nil:
			if report.fail(err); report.Unreadable == unreadableLimit {
				return report, outdated, nil
			}
		case old:
			report.Outdated++
			outdated = append(outdated, r)
		}
	}
	return report, outdated, nil
}

// SealedWith is how many objects of this replica are stored as values that begin with the prefix, whoever may read them. It looks at what
// has changed since it was asked last for the same prefix, and at all objects only if that is long ago.
func (s *Store) SealedWith(prefix string) (objects int) {
	s.sealed.mu.Lock()
	defer s.sealed.mu.Unlock()
	root, last := s.log.Root(), &s.sealed
	if last.prefix != prefix || last.root == 0 || root.Revision < last.root || !s.countChanges(prefix, root.Revision) {
		last.objects = countSealed(root, prefix)
	}
	last.prefix, last.root = prefix, root.Revision
	return last.objects
}

// sealedCount is what SealedWith has found last, at a revision of root.
type sealedCount struct {
	mu      sync.Mutex
	prefix  string
	root    uint64
	objects int
}

// countChanges brings the last count up to the revision. It reports false if it cannot.
func (s *Store) countChanges(prefix string, revision uint64) bool {
	if revision > s.sealed.root+changesLimit {
		return false
	}
	objects := s.sealed.objects
	for at := s.sealed.root + 1; at <= revision; at++ {
		event, ok := s.log.EventAt(at)
		if !ok {
			return false
		}
		if isSealedWith(event.Prev, prefix) {
			objects--
		}
		if isSealedWith(event.Record, prefix) {
			objects++
		}
	}
	s.sealed.objects = objects
	return true
}

func countSealed(root *state.Root, prefix string) (objects int) {
	for r := range root.All("/") {
		if isSealedWith(r, prefix) {
			objects++
		}
	}
	return objects
}

func isSealedWith(r *record.Record, prefix string) bool {
	return r != nil && len(r.Value) > len(prefix) && r.Value[0] == command.EncodingEncrypted && string(r.Value[1:1+len(prefix)]) == prefix
}

func (e *EncryptionReport) fail(err error) {
	if e.Unreadable++; e.Unreadable > 1 {
		return
	}
	e.Problem = err.Error()
	var one *unreadable
	if errors.As(err, &one) {
		e.Problem = one.key + ": " + one.cause.Error()
	}
}

// concerned reports whether a record is or may have to be encrypted; one that is not there is not.
func (s *seals) concerned(gr schema.GroupResource, r *record.Record) bool {
	return r != nil && (len(r.Value) > 0 && r.Value[0] == command.EncodingEncrypted || s.transformer(gr) != nil)
}

// resourceOf says of which resource a key's object is; false of what is no object.
func resourceOf(key string) (schema.GroupResource, bool) {
	group, rest, _ := strings.Cut(strings.TrimPrefix(key, "/"), "/")
	resource, _, ok := strings.Cut(rest, "/")
	if group == coreGroup {
		group = ""
	}
	return schema.GroupResource{Group: group, Resource: resource}, ok && !strings.HasPrefix(key, claimsPrefix)
}
