package state

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/google/btree"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/watch"
	"github.com/setpoint-io/setpoint/raftstore/wire"
)

// Restore replaces the state with a snapshot. It reads and verifies all of it
// before anything changes; a bad one is refused with ErrCorruptSnapshot. Watchers
// that the snapshot's history covers go on, others get ErrCompacted. Call it from
// the goroutine that applies.
func (s *State) Restore(r io.Reader) error {
	l, err := load(r)
	if err != nil {
		return err
	}
	s.tree, s.meta, s.digest, s.bytes, s.sessions = l.tree, l.meta, l.digest, l.bytes, l.sessions
	s.begin(l.historyStart, l.history)
	return nil
}

// begin publishes the state as one with that history.
func (s *State) begin(historyStart uint64, history []watch.Event) {
	root := s.newRoot()
	root.tree = s.tree.Clone()
	s.publish.Lock()
	s.root.Store(root)
	s.ring.Reset(historyStart, history, s.meta.revision)
	s.publish.Unlock()
	s.past.forget()
	s.waiters.broadcast()
}

// Verify reads a snapshot, as for a backup that must be known to be good, and
// returns its objects.
func Verify(r io.Reader) (*Root, error) {
	s := New(Options{})
	if err := s.Restore(r); err != nil {
		return nil, err
	}
	return s.Root(), nil
}

// loader builds a state from the blocks of a snapshot.
type loader struct {
	tree         *btree.BTreeG[*Record]
	meta         meta
	digest       record.Digest
	bytes        int64
	sessions     sessionTable
	history      []watch.Event
	historyStart uint64

	lastKey string
	// latest is the record that each key's last event put.
	latest map[string]*Record
}

func load(r io.Reader) (*loader, error) {
	l := &loader{tree: newTree(), latest: map[string]*Record{}}
	blocks := &blockReader{r: r}
	at := section(0)
	for {
		next, items, err := blocks.next()
		if errors.Is(err, io.EOF) && at == footerSection {
			return l, nil
		}
		if err != nil {
			return nil, cutShort(unexpected(err))
		}
		if err := l.block(at, next, items); err != nil {
			return nil, err
		}
		at = next
	}
}

// block reads the items of one block; at is the section of the block before.
func (l *loader) block(at, next section, items *wire.Reader) error {
	once := next == headerSection || next == footerSection
	if next < at || once && next == at || at == 0 && next != headerSection {
		return fmt.Errorf("%w: section %d after %d", ErrCorruptSnapshot, next, at)
	}
	for items.Len() > 0 {
		if err := l.item(next, items); err != nil {
			return fmt.Errorf("%w: section %d: %w", ErrCorruptSnapshot, next, err)
		}
	}
	if items.Err() != nil {
		return fmt.Errorf("%w: section %d: %w", ErrCorruptSnapshot, next, items.Err())
	}
	return nil
}

func (l *loader) item(s section, r *wire.Reader) error {
	switch s {
	case headerSection:
		return l.header(r)
	case sessionSection:
		return l.session(r)
	case resultSection:
		return l.result(r)
	case recordSection:
		return l.record(r)
	case eventSection:
		return l.event(r)
	case footerSection:
		return l.footer(r)
	}
	return fmt.Errorf("unknown section")
}

func (l *loader) header(r *wire.Reader) error {
	for i := range len(snapshotMagic) {
		if r.Byte() != snapshotMagic[i] {
			return fmt.Errorf("not a snapshot")
		}
	}
	format := r.Uvarint()
	switch {
	case format > lifeFormat:
		return fmt.Errorf("%w: %d, this release reads up to %d", ErrNewerSnapshot, format, lifeFormat)
	case format < snapshotFormat:
		return fmt.Errorf("format %d", format)
	}
	l.meta.revision, l.meta.index, l.meta.featureLevel = r.Uvarint(), r.Uvarint(), r.Uvarint()
	l.meta.clusterID = r.String()
	l.sessions.lastID, l.historyStart = r.Uvarint(), r.Uvarint()
	if format == lifeFormat {
		l.meta.life, l.meta.formerLife = r.String(), r.String()
	}
	if l.historyStart > l.meta.revision {
		return fmt.Errorf("history from %d, revision %d", l.historyStart, l.meta.revision)
	}
	return r.Err()
}

func (l *loader) session(r *wire.Reader) error {
	id, used, highest := r.Uvarint(), r.Uvarint(), r.Uvarint()
	if n := len(l.sessions.open); n >= MaxSessions || n > 0 && l.sessions.open[n-1].id >= id || id > l.sessions.lastID {
		return fmt.Errorf("session %d out of place", id)
	}
	ses := newSession(id, used)
	ses.highest = highest
	l.sessions.open = append(l.sessions.open, ses)
	return r.Err()
}

func (l *loader) result(r *wire.Reader) error {
	id, sequence := r.Uvarint(), r.Uvarint()
	result := command.ReadResult(r)
	ses := l.sessions.find(id)
	if ses == nil || sequence > ses.highest || ses.hasForgotten(sequence) {
		return fmt.Errorf("result %d of session %d out of place", sequence, id)
	}
	ses.results.ReplaceOrInsert(remembered{sequence, result})
	return r.Err()
}

func (l *loader) record(r *wire.Reader) error {
	rec := readRecord(r)
	if r.Err() != nil {
		return r.Err()
	}
	if rec.Key <= l.lastKey || rec.ModRevision > l.meta.revision || rec.CreateRevision > rec.ModRevision {
		return fmt.Errorf("record %q out of place", rec.Key)
	}
	l.lastKey = rec.Key
	l.digest = l.digest.Plus(rec.Digest())
	l.bytes += weight(rec)
	l.tree.ReplaceOrInsert(rec)
	return nil
}

// readRecord copies the value, since the block's memory is used again.
func readRecord(r *wire.Reader) *Record {
	rec := &Record{Key: r.String(), UID: r.String()}
	rec.CreateRevision, rec.ModRevision = r.Uvarint(), r.Uvarint()
	rec.Value = bytes.Clone(r.Bytes())
	return rec.Seal()
}

func (l *loader) event(r *wire.Reader) error {
	e := watch.Event{Type: watch.EventType(r.Byte()), Revision: r.Uvarint(), Key: r.String()}
	e.Origin = readOrigin(r)
	current, _ := l.tree.Get(&Record{Key: e.Key})
	e.Record = readReference(r, current)
	e.Prev = readReference(r, l.latest[e.Key])
	if r.Err() != nil {
		return r.Err()
	}
	if e.Revision != l.historyStart+uint64(len(l.history))+1 || !wellFormed(&e) {
		return fmt.Errorf("event %d out of place", e.Revision)
	}
	if e.Record != nil {
		e.Key = e.Record.Key
	}
	l.latest[e.Key] = e.Record
	l.history = append(l.history, e)
	return nil
}

// wellFormed reports whether an event of its type can carry such records.
func wellFormed(e *watch.Event) bool {
	if e.Prev != nil && (e.Prev.Key != e.Key || e.Prev.ModRevision >= e.Revision) {
		return false
	}
	if e.Type == watch.Put {
		return e.Record != nil && e.Record.Key == e.Key && e.Record.ModRevision == e.Revision
	}
	return e.Type == watch.Delete && e.Record == nil && e.Prev != nil
}

func readOrigin(r *wire.Reader) *command.Origin {
	o := &command.Origin{Actor: command.Actor{User: r.String(), FieldManager: r.String()}}
	o.Cause = command.Cause{UID: r.String(), Revision: r.Uvarint()}
	o.RequestID = r.String()
	o.Index, o.Term = r.Uvarint(), r.Uvarint()
	return o
}

func readReference(r *wire.Reader, known *Record) *Record {
	switch r.Byte() {
	case recordAbsent:
		return nil
	case recordInline:
		return readRecord(r)
	case recordShared:
		if known != nil {
			return known
		}
	}
	r.Fail(wire.ErrMalformed)
	return nil
}

// footer compares what was read with what was written.
func (l *loader) footer(r *wire.Reader) error {
	sessions, records, events := r.Uvarint(), r.Uvarint(), r.Uvarint()
	digest := readDigest(r)
	switch {
	case r.Err() != nil:
		return r.Err()
	case sessions != uint64(len(l.sessions.open)), records != uint64(l.tree.Len()), events != uint64(len(l.history)):
		return fmt.Errorf("counts differ")
	case l.historyStart+events != l.meta.revision:
		return fmt.Errorf("history ends at %d, revision %d", l.historyStart+events, l.meta.revision)
	case digest != l.digest:
		return fmt.Errorf("state hash differs")
	}
	return nil
}
