package history

import (
	"context"
	"errors"
	"time"
)

// RevisionAt returns the last revision of a time or before. A time before history begins is an ErrTooOld, one in a part that is missing,
// or whose changes have no time, an ErrHole.
func (h *History) RevisionAt(ctx context.Context, at time.Time) (uint64, error) {
	if h == nil {
		return 0, &TooOld{}
	}
	done, err := h.walk(ctx)
	if err != nil {
		return 0, err
	}
	defer done()
	root := h.config.Source.Root()
	v, err := h.view(ctx, root)
	if err != nil {
		return 0, err
	}
	defer v.release()
	m := moment{view: v, millis: at.UnixMilli(), found: v.oldest, at: v.oldest}
	if err := m.search(ctx, root.Revision); err != nil {
		return 0, err
	}
	switch {
	case !m.known && m.next > 0:
		begin, _ := v.begins()
		return 0, &TooOld{Oldest: v.oldest, Since: timeOf(begin)}
	case m.unsure:
		return 0, &Hole{After: m.found, Until: m.at}
	}
	return m.found, nil
}

// moment looks for a time.
type moment struct {
	view   *view
	millis int64
	// found is the last change of the time or before, if known is set; at is how far it was looked; next is the first change behind
	// the time, 0: there is none.
	found, at, next uint64
	known           bool
	// unsure: between found and next is a hole, or a change without a time.
	unsure bool
}

// begin is the newest block that surely has a change of the time or before.
func (m *moment) begin() int {
	for i := len(m.view.blocks) - 1; i >= 0; i-- {
		b := m.view.blocks[i]
		if b.untimed < b.changes && int64(b.lastMillis) <= m.millis && !m.view.broken[b] {
			return i
		}
	}
	return 0
}

// search looks at what follows on begin, up to the first change behind the time.
func (m *moment) search(ctx context.Context, until uint64) error {
	blocks := m.view.blocks[min(m.begin(), len(m.view.blocks)):]
	if len(blocks) > 0 {
		m.at = blocks[0].after
	}
	for _, b := range blocks {
		if err := ctx.Err(); err != nil || m.next > 0 {
			return err
		}
		if err := m.searchBlock(b, until); err != nil {
			return err
		}
	}
	for i := 0; i < len(m.view.memory) && m.next == 0; i++ {
		o := &m.view.memory[i]
		m.pass(o.after)
		if _, err := within(o.raw, o.after, o.after, until, m.visit); err != nil {
			return err
		}
	}
	return nil
}

func (m *moment) searchBlock(b *block, until uint64) error {
	m.pass(b.after)
	if m.view.broken[b] {
		m.pass(b.last)
		return nil
	}
	_, err := m.view.blockChanges(b, b.after, until, 0, true, m.visit)
	if errors.Is(err, errDamaged) {
		m.view.spoil(b)
		m.pass(b.last)
		return nil
	}
	return err
}

// pass goes on to a revision; what is passed over is not known.
func (m *moment) pass(to uint64) {
	if to > m.at {
		m.at, m.unsure = to, true
	}
}

// visit looks at a change, and reports whether to go on.
func (m *moment) visit(c *Change) bool {
	switch {
	case c.Time.IsZero():
		m.at, m.unsure = c.Revision, true
	case c.Time.UnixMilli() > m.millis:
		m.next = c.Revision
	default:
		m.found, m.at, m.known, m.unsure = c.Revision, c.Revision, true, false
	}
	return m.next == 0
}

// begins is the time of the first change that has one, in milliseconds since 1970; false: there is none.
func (v *view) begins() (uint64, bool) {
	for _, b := range v.blocks {
		if b.firstMillis > 0 {
			return b.firstMillis, true
		}
	}
	for i := range v.memory {
		if v.memory[i].firstMillis > 0 {
			return v.memory[i].firstMillis, true
		}
	}
	return 0, false
}
