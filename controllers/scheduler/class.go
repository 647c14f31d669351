package scheduler

import (
	"container/list"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/podkey"
	"github.com/setpoint-io/setpoint/controllers/scheduler/profile"
)

// The limits of what is remembered for the next pod of a class; beyond them the classes go that were not used for longest.
const (
	classLimit     = 8192
	classNodeLimit = 16_000_000 // nodes times classes; about 8 bytes each, if the class fits nowhere
	verdictLimit   = 2_000_000  // nodes times shapes; about 50 bytes each
)

// class is what identical pods share: the plugins prepared for them.
type class struct {
	pod    *plugin.Pod // any pod of the class
	pinned []string    // the nodes outside of which the pod never fits; nil: any
	shape  *shape
	// Of the surveys, those that the profile wants to filter, and to score; all has both.
	surveyFilters, surveyScores []preparedSurvey
	all                         []plugin.Survey

	failure *failure // the last one; nil: the last pod fit
}

type preparedSurvey struct {
	plugin plugin.Surveyor
	weight int64
	survey plugin.Survey
}

func newClass(pod *plugin.Pod, shape *shape, list []profile.Plugin, world plugin.World) *class {
	c := &class{pod: pod, pinned: pod.PinnedTo(), shape: shape}
	for _, p := range list {
		if s, ok := p.Plugin.(plugin.Surveyor); ok {
			c.addSurvey(p, preparedSurvey{s, p.Weight, s.Survey(pod, world)})
		}
	}
	return c
}

func (c *class) addSurvey(p profile.Plugin, s preparedSurvey) {
	if s.survey == nil {
		return
	}
	c.all = append(c.all, s.survey)
	if p.Filters {
		c.surveyFilters = append(c.surveyFilters, s)
	}
	if p.Scores {
		c.surveyScores = append(c.surveyScores, s)
	}
}

func (c *class) release() {
	for _, s := range c.all {
		s.Release()
	}
}

// verdict gives the whole answer for a node, surveys included.
func (c *class) verdict(node *plugin.Node) (*plugin.Rejection, plugin.Event) {
	if r, wakes := c.shape.verdict(node); r != nil {
		return r, wakes
	}
	return c.ask(node)
}

// asks tells whether any survey rejects nodes as things are now.
func (c *class) asks() bool {
	return slices.ContainsFunc(c.surveyFilters, func(s preparedSurvey) bool { return s.survey.Filters() })
}

func (c *class) ask(node *plugin.Node) (*plugin.Rejection, plugin.Event) {
	for i := range c.surveyFilters {
		if r := c.surveyFilters[i].survey.Filter(node); r != nil {
			return r, c.surveyFilters[i].plugin.Wakes()
		}
	}
	return nil, 0
}

// rejections asks every plugin about the node, not only until the first says no.
func (c *class) rejections(node *plugin.Node) []NamedRejection {
	var all []NamedRejection
	for _, f := range c.shape.filters {
		if r := f.judge(node); r != nil {
			all = append(all, NamedRejection{f.plugin.Name(), r})
		}
	}
	for _, s := range c.surveyFilters {
		if r := s.survey.Filter(node); r != nil {
			all = append(all, NamedRejection{s.plugin.Name(), r})
		}
	}
	return all
}

// classID names a class. The world's part of it is in the name, so that a class made for another world is not found.
type classID struct {
	podkey.Key
	spread        string // the selector for default spreading
	affinityInUse bool
}

// classes are those that an engine remembers.
type classes struct {
	by     map[classID]*list.Element
	recent *list.List // of *remembered, the one used last in front
	shapes shapes
}

type remembered struct {
	*class
	id classID
}

func newClasses() classes {
	return classes{by: map[classID]*list.Element{}, recent: list.New(), shapes: shapes{by: map[string]*shape{}, recent: list.New()}}
}

func (cs *classes) find(id classID) *class {
	element := cs.by[id]
	if element == nil {
		return nil
	}
	cs.recent.MoveToFront(element)
	return element.Value.(*remembered).class
}

// keep remembers a class, and forgets the one not used for longest if there are too many for that many nodes.
func (cs *classes) keep(id classID, c *class, nodes int) {
	if c.shape.users++; c.shape.users == 1 {
		cs.shapes.by[id.Shape] = c.shape
	}
	cs.by[id] = cs.recent.PushFront(&remembered{c, id})
	if len(cs.by) > min(classLimit, max(classNodeLimit/max(nodes, 1), 1)) {
		cs.forget(cs.recent.Back())
	}
}

func (cs *classes) forget(element *list.Element) {
	r := cs.recent.Remove(element).(*remembered)
	delete(cs.by, r.id)
	r.release()
	cs.shapes.leave(r.id.Shape, r.class.shape)
}

// reset forgets all.
func (cs *classes) reset() {
	for cs.recent.Len() > 0 {
		cs.forget(cs.recent.Back())
	}
}

// spreadText names a selector for default spreading.
func spreadText(spread labels.Selector) string {
	if spread == nil {
		return ""
	}
	return spread.String()
}
