package history

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/record"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

const (
	// periodBytesMax is how much the values may take that Between copies. Objects beyond it have no values: they are Large.
	periodBytesMax = 32 << 20
	// writersMax is how many writers of one object are told, the first ones.
	writersMax = 8
	// leftMax is up to how many objects are counted that are left out.
	leftMax = 100_000
)

// Wanted is which changes are asked for: those under Prefix, after one revision and up to another, that Holds takes.
type Wanted struct {
	Prefix       string
	After, Until uint64
	Holds        func(key string, revision uint64) bool
	// Limit is how many objects are told, those that changed first.
	Limit int
}

// Period is what happened between two revisions.
type Period struct {
	// Objects are those that changed, in the order in which they did.
	Objects []*Stretch
	// Left counts those beyond the limit, up to leftMax.
	Left  int
	Holes []Hole
}

// Stretch is what happened to one key in a period.
type Stretch struct {
	Key     string
	Changes int
	// Writers are who made changes, each once.
	Writers []command.Actor
	// WritersMore: there are others.
	WritersMore bool
	// Revision and Time are those of the last change, Deleted what it did, UID that of its object.
	Revision uint64
	Time     time.Time
	Deleted  bool
	UID      string
	// Existed: there was an object at the begin, of the uid FormerUID.
	Existed   bool
	FormerUID string
	// Before and After are the object at the begin and at the end, if it is the same one; nil where it is not, or is Purged, Large or Lost.
	Before, After *record.Record
	// Purged: a value was removed. Large: the values are left out. Lost: a hole hides changes of the key, or may.
	Purged, Large, Lost bool

	settled bool
}

// Between returns what happened in a period, whose revisions the store has reached. Errors wrap ErrTooOld, or are as those of At; what a
// hole touches is Lost.
func (h *History) Between(ctx context.Context, w Wanted) (*Period, error) {
	if h == nil {
		return nil, &TooOld{}
	}
	done, err := h.walk(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	root := h.config.Source.Root()
	v, err := h.view(ctx, root)
	if err != nil {
		return nil, err
	}
	defer v.release()
	if w.After < v.oldest {
		return nil, &TooOld{Oldest: v.oldest}
	}
	holes := slices.DeleteFunc(v.holes(w.After), func(hole Hole) bool { return hole.After >= w.Until })
	purged, p := h.purgesOf(root), period{wanted: w, holes: holes, stretches: map[string]*Stretch{}, left: map[string]struct{}{}}
	mark, all, holds := keysOf(w.Prefix)
	err = v.changes(ctx, w.After, root.Revision, mark, all, func(c *Change) bool {
		if holds(c.Key) {
			purged.empty(c)
			p.visit(c)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	p.settle(root)
	return &Period{Objects: p.order, Left: len(p.left), Holes: holes}, nil
}

// Oldest is the first revision that can be asked for.
func (h *History) Oldest() uint64 {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.oldest
}

// period collects stretches.
type period struct {
	wanted    Wanted
	holes     []Hole
	stretches map[string]*Stretch
	order     []*Stretch
	left      map[string]struct{}
	bytes     int
}

func (p *period) visit(c *Change) {
	s := p.stretches[c.Key]
	switch {
	case c.Revision > p.wanted.Until:
		if s != nil && !s.settled {
			p.end(s, c.Before, p.copied)
		}
	case !p.wanted.Holds(c.Key, c.Revision):
	case s != nil:
		p.goOn(s, c)
	case len(p.order) < p.wanted.Limit:
		p.goOn(p.begin(c), c)
	case len(p.left) < leftMax:
		p.left[strings.Clone(c.Key)] = struct{}{}
	}
}

func (p *period) begin(c *Change) *Stretch {
	s := &Stretch{Key: c.Key, Lost: c.Before == nil && p.hides(p.wanted.After, c.Revision)}
	if c.Before != nil {
		s.Existed, s.FormerUID = true, c.Before.UID
		s.Lost = c.Before.ModRevision > p.wanted.After
		s.Before = p.copied(s, c.Before)
	}
	p.stretches[c.Key], p.order = s, append(p.order, s)
	return s
}

// hides reports whether a hole lies between two changes of a key: what found nothing may have found it because of a deletion in the hole.
func (p *period) hides(one, other uint64) bool {
	return slices.ContainsFunc(p.holes, func(hole Hole) bool { return hole.After < other && hole.Until > one })
}

// fits takes room for a value, if there is some.
func (p *period) fits(s *Stretch, rec *record.Record) bool {
	s.Purged = s.Purged || len(rec.Value) == 0
	if len(rec.Value) == 0 {
		return false
	}
	if p.bytes+len(rec.Value) > periodBytesMax {
		s.Large = true
		return false
	}
	p.bytes += len(rec.Value)
	return true
}

// copied is a record in memory of its own, nil if there is no room for it.
func (p *period) copied(s *Stretch, rec *record.Record) *record.Record {
	if !p.fits(s, rec) {
		return nil
	}
	copied := &record.Record{Key: rec.Key, UID: rec.UID, CreateRevision: rec.CreateRevision, ModRevision: rec.ModRevision}
	copied.Value = bytes.Clone(rec.Value)
	return copied
}

// goOn takes a change that is in the period.
func (p *period) goOn(s *Stretch, c *Change) {
	s.Lost = s.Lost || s.Changes > 0 && !p.follows(c, s)
	s.Changes++
	s.Revision, s.Time, s.Deleted, s.UID = c.Revision, c.Time, c.Deleted, c.UID
	if !slices.Contains(s.Writers, c.Origin.Actor) {
		if len(s.Writers) < writersMax {
			s.Writers = append(s.Writers, c.Origin.Actor)
		} else {
			s.WritersMore = true
		}
	}
	if c.Deleted {
		p.forget(s)
	}
}

// follows reports whether a change found what the one before had left.
func (p *period) follows(c *Change, s *Stretch) bool {
	if s.Deleted {
		return c.Before == nil && !p.hides(s.Revision, c.Revision)
	}
	return c.Before != nil && c.Before.ModRevision == s.Revision
}

// forget gives the room of an object back that is no more.
func (p *period) forget(s *Stretch) {
	if s.Before != nil {
		p.bytes -= len(s.Before.Value)
		s.Before = nil
	}
}

// shared is a record of the store, which nobody changes, nil if there is no room for it in an answer.
func (p *period) shared(s *Stretch, rec *record.Record) *record.Record {
	if !p.fits(s, rec) {
		return nil
	}
	return rec
}

// end is given what there was after the period, nil: nothing, and how it is kept.
func (p *period) end(s *Stretch, rec *record.Record, kept func(*Stretch, *record.Record) *record.Record) {
	s.settled = true
	switch {
	case s.Deleted:
		s.Lost = s.Lost || rec != nil
		return
	case rec == nil, rec.ModRevision != s.Revision:
		s.Lost = true
		return
	}
	if s.Before != nil && s.Before.UID == rec.UID {
		s.After = kept(s, rec)
	}
}

// settle looks into the present for what did not change any more.
func (p *period) settle(root *state.Root) {
	for _, s := range p.order {
		if s.settled {
			continue
		}
		rec, _ := root.Get(s.Key)
		p.end(s, rec, p.shared)
	}
}
