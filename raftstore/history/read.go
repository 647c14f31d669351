package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

var (
	// ErrTooOld reports a revision or a time before history begins.
	ErrTooOld = errors.New("history does not reach back so far")
	// ErrHole reports what cannot be known because a part of history is missing.
	ErrHole = errors.New("a part of history is missing")
	// ErrBehind reports that history does not get on, as with a disk that hangs.
	ErrBehind = errors.New("this server's history is behind")
	// ErrBusy reports that others have asked for as much as a server reads at a time.
	ErrBusy = errors.New("history is being read by others: try again")
)

const (
	// walksMax is how many answers are being read at a time, walkWait how long one waits for its turn. Who reads how many of them is for
	// the caller to divide.
	walksMax = 3
	walkWait = 10 * time.Second
	// changesBytesMax is how much the values of the changes may take that Changes returns.
	changesBytesMax = 32 << 20
)

// A TooOld is an ErrTooOld that says where history begins: Oldest is the first revision that can be asked for, Since the time of the first
// change, zero unless it was asked for a time.
type TooOld struct {
	Oldest uint64
	Since  time.Time
}

// Error implements error.
func (e *TooOld) Error() string {
	return fmt.Sprintf("%v: the oldest revision is %d", ErrTooOld, e.Oldest)
}

// Is makes it an ErrTooOld.
func (e *TooOld) Is(target error) bool { return target == ErrTooOld }

// A Hole is the revisions after After up to Until, whose changes are not known.
type Hole struct {
	After uint64 `json:"after"`
	Until uint64 `json:"until"`
}

// Error implements error.
func (e *Hole) Error() string {
	return fmt.Sprintf("%v: the changes after revision %d up to %d", ErrHole, e.After, e.Until)
}

// Is makes it an ErrHole.
func (e *Hole) Is(target error) bool { return target == ErrHole }

// view is what a reader sees: the blocks on the disk, oldest first, and those in memory.
type view struct {
	blocks  []*block
	memory  []open
	oldest  uint64
	damaged func(*block)
	broken  map[*block]bool
	// release ends it.
	release func()
}

// view returns what is there once it has the revision of a root. The caller releases it.
func (h *History) view(ctx context.Context, root *state.Root) (*view, error) {
	if err := h.await(ctx, root.Revision, root.Life); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	v := h.present()
	held := h.hold()
	v.broken, v.damaged, v.release = maps.Clone(h.damaged), h.noteDamage, func() { h.release(held) }
	return v, nil
}

// present is what there is, without a hold on it. The caller holds mu.
func (h *History) present() *view {
	v := &view{blocks: h.blocks(), oldest: h.oldest, broken: h.damaged}
	if h.closing != nil {
		v.memory = append(v.memory, *h.closing)
	}
	v.memory = append(v.memory, h.open)
	for i := range v.memory {
		raw := v.memory[i].raw
		v.memory[i].raw = raw[:len(raw):len(raw)]
	}
	return v
}

// walk waits for the turn to read; the caller calls done.
func (h *History) walk(ctx context.Context) (done func(), err error) {
	timer := time.NewTimer(walkWait)
	defer timer.Stop()
	select {
	case h.walks <- struct{}{}:
		return func() { <-h.walks }, nil
	case <-timer.C:
		return nil, ErrBusy
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (h *History) noteDamage(b *block) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.damaged[b] {
		h.damaged[b] = true
		h.config.Logger.Warn("history is damaged: a part of it cannot be read", "file", b.file.path, "after", b.after, "until", b.last)
	}
}

// spoil makes a block a hole.
func (v *view) spoil(b *block) {
	v.broken[b] = true
	v.damaged(b)
}

// holes are those after a revision, oldest first.
func (v *view) holes(after uint64) (holes []Hole) {
	at := v.oldest
	add := func(begin, end uint64) {
		if n := len(holes); n > 0 && holes[n-1].Until == begin {
			holes[n-1].Until = end
		} else if end > after && end > begin {
			holes = append(holes, Hole{begin, end})
		}
	}
	for _, b := range v.blocks {
		add(at, b.after)
		if v.broken[b] {
			add(b.after, b.last)
		}
		at = b.last
	}
	for i := range v.memory {
		add(at, v.memory[i].after)
		at = v.memory[i].last
	}
	return holes
}

// changes visits the changes after a revision up to another that have a mark, oldest first. Blocks that cannot be read become holes.
func (v *view) changes(ctx context.Context, after, until uint64, mark uint32, all bool, visit func(*Change) bool) error {
	for _, b := range v.blocks {
		if b.last <= after || b.after >= until || v.broken[b] {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		more, err := v.blockChanges(b, after, until, mark, all, visit)
		if errors.Is(err, errDamaged) {
			v.spoil(b)
			continue
		}
		if err != nil || !more {
			return err
		}
	}
	for i := range v.memory {
		more, err := within(v.memory[i].raw, v.memory[i].after, after, until, visit)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// blockChanges reports whether more are wanted.
func (v *view) blockChanges(b *block, after, until uint64, mark uint32, all bool, visit func(*Change) bool) (more bool, err error) {
	if !all {
		marks, err := b.marks()
		if err != nil || !hasMark(marks, mark) {
			return true, err
		}
	}
	raw, err := b.body()
	if err != nil {
		return true, err
	}
	return within(raw, b.after, after, until, visit)
}

// within visits the changes of a block that are in (after, until], and reports whether more are wanted.
func within(raw []byte, begin, after, until uint64, visit func(*Change) bool) (more bool, err error) {
	more = true
	err = eachChange(raw, place{revision: begin}, func(c *Change) bool {
		if c.Revision > until {
			return false
		}
		if c.Revision > after {
			more = visit(c)
		}
		return more
	})
	return more, err
}

// keysOf is how changes under a prefix are found: by the mark of a folder or a key, or by looking at all.
func keysOf(prefix string) (mark uint32, all bool, holds func(key string) bool) {
	switch {
	case prefix == "" || prefix == "/":
		return 0, true, func(string) bool { return true }
	case strings.HasSuffix(prefix, "/"):
		return markOf(prefix), false, func(key string) bool { return strings.HasPrefix(key, prefix) }
	}
	return markOf(prefix), false, func(key string) bool { return key == prefix }
}

// At returns the objects under a folder, or the one under a key, as they were at a revision that the store has reached: a root with
// nothing else in it. Errors wrap ErrTooOld or ErrHole, or are the context's.
func (h *History) At(ctx context.Context, prefix string, revision uint64) (*state.Root, error) {
	if h == nil {
		return nil, &TooOld{Oldest: revision}
	}
	if kept := h.past.find(prefix, revision); kept != nil {
		return kept, nil
	}
	done, err := h.walk(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	if kept := h.past.find(prefix, revision); kept != nil { // while this one waited
		return kept, nil
	}
	root := h.config.Source.Root()
	v, err := h.view(ctx, root)
	if err != nil {
		return nil, err
	}
	defer v.release()
	if revision < v.oldest {
		return nil, &TooOld{Oldest: v.oldest}
	}
	purged := h.purgesOf(root)
	mark, all, holds := keysOf(prefix)
	before := map[string]*record.Record{}
	err = v.changes(ctx, revision, root.Revision, mark, all, func(c *Change) bool {
		if _, known := before[c.Key]; !known && holds(c.Key) {
			purged.empty(c)
			before[c.Key] = c.kept()
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	past := root.Undone(revision, prefix, before)
	if err := v.prove(past, prefix, revision, root.Revision); err != nil {
		return nil, err
	}
	h.past.keep(prefix, past)
	return past, nil
}

// prove finds what a hole hides. An object is proven by its own revision; that there was none, or no other, by a history without holes.
func (v *view) prove(past *state.Root, prefix string, revision, until uint64) error {
	holes := slices.DeleteFunc(v.holes(revision), func(hole Hole) bool { return hole.After >= until })
	for rec := range past.All(prefix) {
		if rec.ModRevision > revision {
			return holeOf(holes, rec.ModRevision)
		}
	}
	_, found := past.Get(prefix)
	if len(holes) > 0 && !found {
		return &holes[0]
	}
	return nil
}

// holeOf is the hole with a revision in it.
func holeOf(holes []Hole, revision uint64) error {
	for _, hole := range holes {
		if hole.After < revision && revision <= hole.Until {
			return &hole
		}
	}
	return &Hole{After: revision - 1, Until: revision}
}

// Known is a change with what there was after it.
type Known struct {
	Change
	// After is the object as it became, nil if it was deleted, or if AfterLost: a hole hides it. Like Before it has no value if that was
	// purged.
	After     *record.Record
	AfterLost bool
}

// newest collects changes: the newest, as many as there may be, and as many bytes.
type newest struct {
	limit   int
	changes []Known
	bytes   int
	more    bool
}

func (n *newest) add(c *Change) {
	n.changes = append(n.changes, Known{Change: *c})
	n.bytes += valueBytes(c)
	for len(n.changes) > n.limit || n.bytes > changesBytesMax && len(n.changes) > 1 {
		n.bytes -= valueBytes(&n.changes[0].Change)
		n.changes[0] = Known{}
		n.changes, n.more = n.changes[1:], true
	}
}

func valueBytes(c *Change) int {
	if c.Before == nil {
		return 0
	}
	return len(c.Before.Value)
}

// Changes are those of one key since a revision, oldest first, but only the newest limit ones, and no more than changesBytesMax of them;
// more: there are older ones. Holes are those of the whole time.
func (h *History) Changes(ctx context.Context, key string, after uint64, limit int) (changes []Known, holes []Hole, more bool, err error) {
	if h == nil {
		return nil, nil, false, &TooOld{}
	}
	done, err := h.walk(ctx)
	if err != nil {
		return nil, nil, false, err
	}
	defer done()
	root := h.config.Source.Root()
	v, err := h.view(ctx, root)
	if err != nil {
		return nil, nil, false, err
	}
	defer v.release()
	purged, kept := h.purgesOf(root), newest{limit: limit}
	err = v.changes(ctx, after, root.Revision, markOf(key), false, func(c *Change) bool {
		if c.Key == key {
			purged.empty(c)
			c.kept()
			kept.add(c)
		}
		return true
	})
	if err != nil {
		return nil, nil, false, err
	}
	kept.pair(root, key)
	return kept.changes, v.holes(after), kept.more, nil
}

// pair tells each change what came of it: what the next one found.
func (n *newest) pair(root *state.Root, key string) {
	present, _ := root.Get(key)
	for i := range slices.Backward(n.changes) {
		c := &n.changes[i]
		switch {
		case c.Deleted:
		case present != nil && present.ModRevision == c.Revision:
			c.After = present
		default:
			c.AfterLost = true
		}
		present = c.Before
	}
}

// ChangeAt returns the change that made a revision. It does not wait: false if history does not have it.
func (h *History) ChangeAt(ctx context.Context, revision uint64) (found Change, ok bool) {
	if h == nil || revision == 0 || revision > h.heldUpTo() {
		return Change{}, false
	}
	v, err := h.view(ctx, &state.Root{Revision: revision})
	if err != nil {
		return Change{}, false
	}
	defer v.release()
	err = v.changes(ctx, revision-1, revision, 0, true, func(c *Change) bool {
		c.kept()
		found, ok = *c, true
		return false
	})
	return found, ok && err == nil
}
