package simulation

import (
	"errors"
	"fmt"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/raftstore/state"
)

// pageKeys is how many keys a page holds.
const pageKeys = 2

// cut is a list that is read page by page, each from another replica.
type cut struct {
	prefix   string
	revision uint64
	from     string
	got      []string
}

func (w *World) beginPage() error {
	root := w.anyReplica().state.Root()
	c := &cut{prefix: prefixes[w.random.IntN(len(prefixes))], revision: root.Revision}
	w.cuts = append(w.cuts, c)
	if err := w.compare(root, c.prefix); err != nil {
		return err
	}
	return w.read(c, root)
}

func (w *World) nextPage() error {
	if len(w.cuts) == 0 {
		return nil
	}
	c, r := w.cuts[0], w.anyReplica()
	root, err := r.state.RootAt(c.revision)
	compacted, _ := r.state.Ring().Bounds()
	w.note("page of %q at %d on %d: %v", c.prefix, c.revision, r.name, err)
	switch {
	case err == nil:
		return w.read(c, root)
	case errors.Is(err, state.ErrFuture) && r.state.Root().Revision < c.revision:
		return nil
	case errors.Is(err, state.ErrCompacted) && compacted > c.revision:
		w.cuts = w.cuts[1:]
		return nil
	}
	return fmt.Errorf("the state at %d on replica %d: %w", c.revision, r.name, err)
}

// read takes one page; after the last, the whole must be what the model had.
func (w *World) read(c *cut, root *state.Root) error {
	n := 0
	for rec := range root.From(c.prefix, c.from) {
		if n++; n > pageKeys {
			return nil
		}
		c.got = append(c.got, fmt.Sprintf("%s@%d", rec.Key, rec.ModRevision))
		c.from = rec.Key + "\x00"
	}
	w.did.Cuts++
	var want []string
	all := w.model.at(c.revision, c.prefix)
	for _, key := range keys(all) {
		want = append(want, fmt.Sprintf("%s@%d", key, all[key].mod))
	}
	for i, other := range w.cuts {
		if other == c {
			w.cuts = append(w.cuts[:i:i], w.cuts[i+1:]...)
			break
		}
	}
	if diff := cmp.Diff(want, c.got); diff != "" {
		return fmt.Errorf("the pages of %q at revision %d are no cut: %s", c.prefix, c.revision, diff)
	}
	return nil
}
