package usage

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// agentWindow is the window of the rates that agents compute themselves.
	agentWindow = 15 * time.Second
	// windowMin is the shortest window of which a rate is made: a shorter one says little.
	windowMin = 5 * time.Second
	// staleAfter is how long figures are shown without newer ones, by this server's clock.
	staleAfter = time.Minute
	nanos      = 1_000_000_000
)

// figure is what something uses.
type figure struct {
	at        time.Time
	window    time.Duration
	nanocores uint64
	memory    uint64
}

// track follows one node or container.
type track struct {
	last sample
	// figure is nil while nothing is known of the rate.
	figure *figure
	// since is when last was new, by this server's clock.
	since time.Time
}

// nodeUsage is what a node last said of itself and its pods.
type nodeUsage struct {
	uid  types.UID
	node *track
	pods map[types.UID]map[string]track
	// failed: the last question had no answer.
	failed bool
}

// after is what is known with one more answer. What it does not speak of is forgotten.
func (u *nodeUsage) after(uid types.UID, said answer, now time.Time) *nodeUsage {
	next := &nodeUsage{uid: uid, pods: make(map[types.UID]map[string]track, len(said.pods))}
	if u == nil {
		u = &nodeUsage{}
	}
	if said.node != nil {
		t := u.node.after(*said.node, now)
		next.node = &t
	}
	for uid, samples := range said.pods {
		tracks := make(map[string]track, len(samples))
		for name, s := range samples {
			var last *track
			if t, known := u.pods[uid][name]; known {
				last = &t
			}
			tracks[name] = last.after(s, now)
		}
		next.pods[uid] = tracks
	}
	return next
}

// after takes one more sample in. One that is not newer than the last says nothing.
func (t *track) after(s sample, now time.Time) track {
	if t == nil {
		return track{s, figureOf(nil, s), now}
	}
	if window := s.at.Sub(t.last.at); window < windowMin {
		if window < -windowMin { // its clock was put back: a new beginning
			return track{s, figureOf(nil, s), now}
		}
		return *t
	}
	return track{s, figureOf(&t.last, s), now}
}

// figureOf is the node's own rate or, if it has none, that since the last sample of the same run. The times in a
// summary are whole seconds, so a rate of 15 of them may be wrong by 7 %, and the node knows better.
func figureOf(last *sample, s sample) *figure {
	f := &figure{at: s.at, memory: s.memory}
	switch {
	case s.nanocores != nil:
		f.window, f.nanocores = agentWindow, *s.nanocores
	case last != nil && last.spent != nil && s.spent != nil && *s.spent >= *last.spent && s.started.Equal(last.started):
		f.window = s.at.Sub(last.at)
		f.nanocores = uint64(float64(*s.spent-*last.spent) / f.window.Seconds())
	default:
		return nil
	}
	if f.nanocores > coresLimit*nanos {
		return nil
	}
	return f
}

// fresh is the figure, or nil if it is not known or too old.
func (t *track) fresh(now time.Time) *figure {
	if t == nil || now.Sub(t.since) > staleAfter {
		return nil
	}
	return t.figure
}
