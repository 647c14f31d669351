package scheduler

import (
	"container/list"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/profile"
)

// shape is what pods share that ask the same of a single node, whoever they belong to: the plugins that judge a node by itself,
// and each node's verdict, kept until the node's generation changes. A node is judged when it is looked at.
type shape struct {
	filters  []preparedFilter
	scores   []preparedScore
	users    int           // classes that have it
	verdicts *verdicts     // nil: none are kept
	recent   *list.Element // in shapes.recent; nil if none are kept
}

// verdicts are those of one shape.
type verdicts struct {
	filtered []verdict // by slot
	scored   []uint64  // by slot: the generation that raw is about; 0: never looked at
	raw      []int32   // len(scores) for each slot; upstream's plugins stay far below the limit
}

// grow makes room for so many slots.
func (v *verdicts) grow(slots, scores int) {
	if short := slots - len(v.filtered); short > 0 {
		v.filtered = append(v.filtered, make([]verdict, short)...)
		v.scored = append(v.scored, make([]uint64, short)...)
		v.raw = append(v.raw, make([]int32, slots*scores-len(v.raw))...)
	}
}

// wiped gives the room to another shape.
func (v *verdicts) wiped(scores int) *verdicts {
	slots := min(len(v.filtered), cap(v.raw)/max(scores, 1))
	v.filtered, v.scored, v.raw = v.filtered[:slots], v.scored[:slots], v.raw[:slots*scores]
	clear(v.filtered)
	clear(v.scored)
	return v
}

type preparedFilter struct {
	plugin plugin.Filter
	judge  func(*plugin.Node) *plugin.Rejection
}

type preparedScore struct {
	plugin plugin.Score
	weight int64
	score  func(*plugin.Node) int64
}

// verdict is what the filters said about one node at one generation.
type verdict struct {
	generation uint64 // 0: never looked at
	rejection  *plugin.Rejection
	wakes      plugin.Event // of the plugin that rejected
}

func newShape(pod *plugin.Pod, list []profile.Plugin) *shape {
	s := &shape{}
	for _, p := range list {
		if f, ok := p.Plugin.(plugin.Filter); ok && p.Filters {
			if judge := f.Filter(pod); judge != nil {
				s.filters = append(s.filters, preparedFilter{f, judge})
			}
		}
		if f, ok := p.Plugin.(plugin.Score); ok && p.Scores {
			if score := f.Score(pod); score != nil {
				s.scores = append(s.scores, preparedScore{f, p.Weight, score})
			}
		}
	}
	return s
}

// verdict gives the first rejection of a node by the filters, nil if it fits.
func (s *shape) verdict(node *plugin.Node) (*plugin.Rejection, plugin.Event) {
	if s.verdicts == nil {
		return s.filter(node)
	}
	s.verdicts.grow(node.Slot+1, len(s.scores))
	v := &s.verdicts.filtered[node.Slot]
	if v.generation != node.Generation {
		v.generation = node.Generation
		v.rejection, v.wakes = s.filter(node)
	}
	return v.rejection, v.wakes
}

func (s *shape) filter(node *plugin.Node) (*plugin.Rejection, plugin.Event) {
	for i := range s.filters {
		if r := s.filters[i].judge(node); r != nil {
			return r, s.filters[i].plugin.Wakes()
		}
	}
	return nil, 0
}

// prepare has the raw scores of nodes up to date, if they are kept.
func (s *shape) prepare(nodes []*plugin.Node) {
	if s.verdicts == nil {
		return
	}
	for _, node := range nodes {
		s.verdicts.grow(node.Slot+1, len(s.scores))
		if at := &s.verdicts.scored[node.Slot]; *at != node.Generation {
			*at = node.Generation
			raw := s.verdicts.raw[node.Slot*len(s.scores):]
			for k := range s.scores {
				raw[k] = int32(s.scores[k].score(node))
			}
		}
	}
}

// score fills in what the k-th plugin gives each node, not normalized. prepare came before.
func (s *shape) score(k int, nodes []*plugin.Node, into []int64) {
	if s.verdicts == nil {
		for i, node := range nodes {
			into[i] = s.scores[k].score(node)
		}
		return
	}
	raw, n := s.verdicts.raw, len(s.scores)
	for i, node := range nodes {
		into[i] = int64(raw[node.Slot*n+k])
	}
}

// shapes are those of the classes that an engine remembers.
type shapes struct {
	by     map[string]*shape
	recent *list.List // of *shape that keep verdicts, the one used last in front
}

// find gives the shape with that key, or makes it.
func (ss *shapes) find(key string, pod *plugin.Pod, list []profile.Plugin) *shape {
	if s := ss.by[key]; s != nil {
		return s
	}
	return newShape(pod, list)
}

// use has the shape keep its verdicts. Another one stops if there are too many for that many nodes.
func (ss *shapes) use(s *shape, nodes int) {
	if s.recent != nil {
		ss.recent.MoveToFront(s.recent)
		return
	}
	s.verdicts = &verdicts{}
	if ss.recent.Len() >= max(verdictLimit/max(nodes, 1), 1) {
		last := ss.recent.Back().Value.(*shape)
		s.verdicts = last.verdicts.wiped(len(s.scores))
		ss.stop(last)
	}
	s.recent = ss.recent.PushFront(s)
}

func (ss *shapes) stop(s *shape) {
	if s.recent != nil {
		ss.recent.Remove(s.recent)
		s.recent, s.verdicts = nil, nil
	}
}

// leave ends the use by one class.
func (ss *shapes) leave(key string, s *shape) {
	if s.users--; s.users == 0 {
		ss.stop(s)
		delete(ss.by, key)
	}
}
