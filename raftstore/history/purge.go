package history

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/durable"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

// PurgesKept is for how long the store has a purge, at least. A server that was away for longer gives its history up.
const PurgesKept = 30 * 24 * time.Hour

// rewrittenSuffix is that of a file that is to take another one's place.
const rewrittenSuffix = ".new"

// purges are keys whose values are removed, each up to a revision: of a change up to it, what was before is emptied. A value that was
// never purged has at least the byte of its encoding.
type purges map[string]uint64

// purgesOf are those that the store has.
func (h *History) purgesOf(root *state.Root) purges {
	if h.config.Purges == "" {
		return nil
	}
	all := purges{}
	for rec := range root.All(h.config.Purges) {
		all[h.purgedKey(rec.Key)] = rec.ModRevision
	}
	return all
}

func (h *History) purgedKey(key string) string { return "/" + strings.TrimPrefix(key, h.config.Purges) }

// empty removes the value before a change if it is purged, and reports whether there was one.
func (p purges) empty(c *Change) bool {
	if c.Before == nil || len(c.Before.Value) == 0 || c.Revision > p[c.Key] {
		return false
	}
	c.Before.Value = nil
	return true
}

// marked reports whether a block may have changes of one of the keys.
func (p purges) marked(marks []byte) bool {
	for key := range p {
		if hasMark(marks, markOf(key)) {
			return true
		}
	}
	return false
}

// purging is what Run has still to remove from the disk. History's mu guards owed and unread, which Run alone sets; the rest is Run's.
type purging struct {
	keys purges
	// owed: purges up to the revision from may have been ordered before and not be done. No event tells of them again.
	owed bool
	from uint64
	// unread are files that may have the values.
	unread []*file
}

// mayHavePurged is how many files may have values that were purged. The caller holds mu.
func (h *History) mayHavePurged() int {
	if h.purging.owed {
		return len(h.files)
	}
	return len(h.purging.unread)
}

// mayOwe notes that the watcher tells of nothing up to the head: not of the purges that were under way when this server was stopped.
func (h *History) mayOwe() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.purging.owed, h.purging.from = h.config.Purges != "", h.head
}

// orderOwed orders the purges up to the head that history began with, once the store has them all: after a start it has those of its last
// snapshot, until the log is applied.
func (h *History) orderOwed() {
	root := h.config.Source.Root()
	if !h.purging.owed || root.Revision < h.purging.from {
		return
	}
	h.orderAll(h.purgesOf(root))
	h.mu.Lock()
	defer h.mu.Unlock()
	h.purging.owed = false
}

// order has the values removed of which an event tells, if it does.
func (h *History) order(e *watch.Event) {
	if h.config.Purges == "" || e.Type != watch.Put || !strings.HasPrefix(e.Key, h.config.Purges) {
		return
	}
	h.orderAll(purges{h.purgedKey(e.Key): e.Revision})
}

// orderAll begins to remove values: what is in memory is written, and all files are looked through. A purge that was done already is done
// again when its event comes: files may have got values since.
func (h *History) orderAll(keys purges) {
	if len(keys) == 0 {
		return
	}
	h.flush()
	if h.purging.keys == nil {
		h.purging.keys = purges{}
	}
	for key, revision := range keys {
		h.purging.keys[key] = max(h.purging.keys[key], revision)
	}
	h.past.forget()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.purging.unread = slices.Clone(h.files)
}

// purgeOne removes the values from one file. One that cannot be rewritten is removed: it becomes a hole.
func (h *History) purgeOne() {
	h.mu.Lock()
	var f *file
	if len(h.purging.unread) > 0 {
		f = h.purging.unread[0]
	}
	known := slices.Contains(h.files, f)
	h.mu.Unlock()
	if known {
		next, err := h.rewritten(f)
		if err != nil {
			h.config.Logger.Warn("values cannot be removed from a file of history: the file is removed", "file", f.path, "err", err)
		}
		if next != f {
			h.replace(f, next)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.purging.unread = h.purging.unread[min(1, len(h.purging.unread)):]
	if len(h.purging.unread) == 0 {
		clear(h.purging.keys)
	}
}

// mustPurge reports whether there are values to remove.
func (h *History) mustPurge() bool { return len(h.purging.keys) > 0 }

// rewritten returns the file without the values: itself if it has none, nil if nothing of it is left. Blocks that cannot be read go.
func (h *History) rewritten(f *file) (*file, error) {
	var text []byte
	changed := f.damagedBytes > 0
	for _, b := range f.blocks {
		part, differs, err := h.purgedBlock(b)
		if err != nil && !errors.Is(err, errDamaged) {
			return nil, err
		}
		changed = changed || differs || err != nil
		text = append(text, part...)
	}
	if !changed {
		return f, nil
	}
	if len(text) == 0 {
		return nil, nil
	}
	return h.putInPlace(f, text)
}

// purgedBlock is a block as it is to lie on the disk; differs: it lies there otherwise.
func (h *History) purgedBlock(b *block) (text []byte, differs bool, err error) {
	marks, err := b.marks()
	if err != nil {
		return nil, true, err
	}
	if h.purging.keys.marked(marks) {
		raw, err := b.body()
		if err != nil {
			return nil, true, err
		}
		o := openAfter(b.after, b.firstMillis, b.life)
		err = eachChange(raw, place{revision: b.after}, func(c *Change) bool {
			differs = h.purging.keys.empty(c) || differs
			o.add(eventOf(c))
			return true
		})
		if err != nil || differs {
			text, _, _ = o.encode(h.encoder)
			return text, true, err
		}
	}
	text = make([]byte, b.bytes())
	_, err = b.file.handle.ReadAt(text, b.offset)
	return text, false, err
}

// eventOf is a change as add takes it.
func eventOf(c *Change) *watch.Event {
	e := &watch.Event{Type: watch.Put, Revision: c.Revision, Key: c.Key, Prev: c.Before, Origin: &command.Origin{}}
	*e.Origin = c.Origin
	if !c.Time.IsZero() {
		e.Origin.UnixNanos = c.Time.UnixNano()
	}
	if c.Deleted {
		e.Type = watch.Delete
		return e
	}
	e.Record = &record.Record{Key: c.Key, UID: c.UID, ModRevision: c.Revision}
	return e
}

// putInPlace writes a file that takes the place of another one, whole or not at all. It is as old as the other one.
func (h *History) putInPlace(f *file, text []byte) (*file, error) {
	path := f.path + rewrittenSuffix
	if err := writeSynced(path, text); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	if err := os.Chtimes(path, f.written, f.written); err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	next, err := openFile(path)
	if err != nil {
		return nil, errors.Join(err, os.Remove(path))
	}
	if err := os.Rename(path, f.path); err != nil {
		return nil, errors.Join(err, next.handle.Close(), os.Remove(path))
	}
	h.syncFolder()
	next.path, next.begun, next.written = f.path, f.begun, f.written
	return next, nil
}

func writeSynced(path string, text []byte) error {
	handle, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, filePerm)
	if err != nil {
		return err
	}
	_, err = handle.Write(text)
	return errors.Join(err, handle.Sync(), handle.Close())
}

// syncFolder makes a rename and a removal last. A file that comes back after a power failure is looked through again at the next start.
func (h *History) syncFolder() {
	if err := durable.SyncFolder(h.config.Dir); err != nil {
		h.config.Logger.Warn("the folder of history cannot be synced", "err", err)
	}
}

// replace puts another file in the place of one, or nothing. Who reads the former one reads on.
func (h *History) replace(f, next *file) {
	h.mu.Lock()
	for _, b := range f.blocks {
		delete(h.damaged, b)
	}
	at := slices.Index(h.files, f)
	if next != nil {
		h.files = slices.Concat(h.files[:at], []*file{next}, h.files[at+1:])
	} else {
		h.files = slices.Concat(h.files[:at], h.files[at+1:])
	}
	h.past.forget()
	h.mu.Unlock()
	if next == nil {
		h.note("a file of history is removed", f.remove(), "file", f.path)
		h.syncFolder()
	}
	h.letGo(f)
}

// removeUnfinished removes what a crash left of files that were being rewritten.
func (h *History) removeUnfinished() error {
	left, err := filepath.Glob(filepath.Join(h.config.Dir, "*"+suffix+rewrittenSuffix))
	for _, path := range left {
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// awayTooLong reports whether purges may have been forgotten since the last change was written.
func (h *History) awayTooLong() bool {
	return h.config.Purges != "" && time.Since(h.files[len(h.files)-1].written) > PurgesKept
}
