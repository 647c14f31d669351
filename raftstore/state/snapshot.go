package state

import (
	"io"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/watch"
	"github.com/setpoint-io/setpoint/raftstore/wire"
)

// The snapshot, versions 1 and 2: blocks of u32 length | u32 CRC-32C | payload, little
// endian; the checksum covers length and payload. A payload is a section byte
// and whole items of that section; sections come in ascending order:
//
//	header   once: magic | format | revision | index | feature level |
//	         cluster id | last session id | history start; in version 2, which
//	         tells of a life: | life | former life
//	sessions id | used | highest
//	results  session id | sequence | result
//	records  key | uid | create | mod | value            in key order
//	events   type | revision | key | origin | record | previous
//	footer   once: sessions | records | events | state hash
//
// A record inside an event is u8 absent, inline, or shared; a shared one is the
// record already read for the key, as most are.
const (
	snapshotMagic = "setpoint snapshot\n"
	// snapshotFormat is that of a state without a life, lifeFormat with one.
	snapshotFormat = 1
	lifeFormat     = 2

	// blockBytes is when a block is closed. One item can take it further.
	blockBytes = 1 << 20
	// maxBlockBytes is what a reader accepts: a full block and the largest item,
	// an event with two values.
	maxBlockBytes = 2*blockBytes + 2*command.MaxValueBytes
	// maxHistoryBytes is how much of the watch history a snapshot carries.
	maxHistoryBytes = 8 << 20
)

type section byte

const (
	headerSection  section = 1
	sessionSection section = 2
	resultSection  section = 3
	recordSection  section = 4
	eventSection   section = 5
	footerSection  section = 6
)

const (
	recordAbsent byte = 0
	recordInline byte = 1
	recordShared byte = 2
)

// Snapshot is the whole state after one entry. Taking it costs microseconds;
// writing it may take long and runs beside Apply.
type Snapshot struct {
	root     *Root
	sessions sessionTable
	history  []watch.Event
	adoption adoption
	// historyStart is the revision after which history is complete.
	historyStart uint64

	objectsWritten int
}

// Snapshot returns the present state, to be written later. Call it from the
// goroutine that applies.
func (s *State) Snapshot() *Snapshot {
	snap := &Snapshot{
		root: s.Root(), sessions: s.sessions.clone(), history: s.ring.Tail(maxHistoryBytes),
		adoption: adoption{tree: s.tree.Clone(), sessions: s.sessions.clone()},
	}
	snap.historyStart = snap.root.Revision - uint64(len(snap.history))
	return snap
}

// Root returns the objects of the snapshot.
func (s *Snapshot) Root() *Root { return s.root }

// WriteTo writes the snapshot, in blocks of about 1 MiB.
func (s *Snapshot) WriteTo(w io.Writer) (int64, error) {
	b := &blockWriter{w: w}
	b.item(headerSection, s.appendHeader)
	s.writeSessions(b)
	for rec := range s.root.All("") {
		if b.err != nil {
			break
		}
		b.item(recordSection, func(p []byte) []byte { return appendRecord(p, rec) })
		s.objectsWritten++
	}
	s.writeHistory(b)
	b.item(footerSection, s.appendFooter)
	b.flush()
	return b.written, b.err
}

func (s *Snapshot) appendHeader(b []byte) []byte {
	b = append(b, snapshotMagic...)
	format := uint64(snapshotFormat)
	if s.root.Life != "" {
		format = lifeFormat
	}
	b = wire.AppendUvarint(b, format, s.root.Revision, s.root.Index, s.root.FeatureLevel)
	b = wire.AppendString(b, s.root.ClusterID)
	b = wire.AppendUvarint(b, s.sessions.lastID, s.historyStart)
	if format == lifeFormat {
		b = wire.AppendString(wire.AppendString(b, s.root.Life), s.root.FormerLife)
	}
	return b
}

func (s *Snapshot) writeSessions(b *blockWriter) {
	for _, ses := range s.sessions.open {
		b.item(sessionSection, func(p []byte) []byte {
			return wire.AppendUvarint(p, ses.id, ses.used, ses.highest)
		})
	}
	for _, ses := range s.sessions.open {
		ses.results.Ascend(func(past remembered) bool {
			b.item(resultSection, func(p []byte) []byte {
				return past.result.Append(wire.AppendUvarint(p, ses.id, past.sequence))
			})
			return b.err == nil
		})
	}
}

func appendRecord(b []byte, rec *Record) []byte {
	b = wire.AppendString(b, rec.Key)
	b = wire.AppendString(b, rec.UID)
	b = wire.AppendUvarint(b, rec.CreateRevision, rec.ModRevision)
	return wire.AppendString(b, rec.Value)
}

// writeHistory writes each record once: what the tree holds and what an earlier
// event put is only referred to.
func (s *Snapshot) writeHistory(b *blockWriter) {
	latest := map[string]*Record{}
	for i := range s.history {
		e := &s.history[i]
		current, _ := s.root.Get(e.Key)
		b.item(eventSection, func(p []byte) []byte {
			p = append(p, byte(e.Type))
			p = wire.AppendUvarint(p, e.Revision)
			p = wire.AppendString(p, e.Key)
			p = appendOrigin(p, e.Origin)
			p = appendReference(p, e.Record, current)
			return appendReference(p, e.Prev, latest[e.Key])
		})
		latest[e.Key] = e.Record
	}
}

func appendOrigin(b []byte, o *command.Origin) []byte {
	b = wire.AppendString(b, o.Actor.User)
	b = wire.AppendString(b, o.Actor.FieldManager)
	b = wire.AppendString(b, o.Cause.UID)
	b = wire.AppendUvarint(b, o.Cause.Revision)
	b = wire.AppendString(b, o.RequestID)
	return wire.AppendUvarint(b, o.Index, o.Term)
}

func appendReference(b []byte, rec, known *Record) []byte {
	switch rec {
	case nil:
		return append(b, recordAbsent)
	case known:
		return append(b, recordShared)
	}
	return appendRecord(append(b, recordInline), rec)
}

func (s *Snapshot) appendFooter(b []byte) []byte {
	b = wire.AppendUvarint(b, uint64(len(s.sessions.open)), uint64(s.root.Len()), uint64(len(s.history)))
	hash := s.root.digest.Bytes()
	return append(b, hash[:]...)
}

// readDigest reads the state hash that appendFooter wrote.
func readDigest(r *wire.Reader) record.Digest {
	var hash [command.HashBytes]byte
	for i := range hash {
		hash[i] = r.Byte()
	}
	return record.DigestFromBytes(hash)
}
