package podautoscaler

import (
	"slices"
	"time"
)

const (
	// historyPeriod is how long recommendations and changes are kept: the longest window that the API takes.
	historyPeriod = time.Hour
	// historyLimit bounds each list of an autoscaler; one that is changed so often forgets the oldest.
	historyLimit = 1024
)

// moment is a number of replicas, or a change of it, and when.
type moment struct {
	replicas int32
	at       time.Time
}

// history is what an autoscaler recommended and did. It is a value: record returns another one.
type history struct {
	recommendations []moment // before they were stabilized
	ups, downs      []moment // by how many
}

// begun is the history with the number of replicas as first recommendation, if there was none.
func (h history) begun(current int32, now time.Time) history {
	if h.recommendations == nil {
		h.recommendations = []moment{{current, now}}
	}
	return h
}

// recommended and changed add to the history.
func (h history) recommended(replicas int32, now time.Time) history {
	h.recommendations = record(h.recommendations, moment{replicas, now})
	return h
}

func (h history) changed(from, to int32, now time.Time) history {
	if to > from {
		h.ups = record(h.ups, moment{to - from, now})
	} else {
		h.downs = record(h.downs, moment{from - to, now})
	}
	return h
}

// record appends, without what is too old, to a list of its own.
func record(list []moment, m moment) []moment {
	kept := slices.DeleteFunc(slices.Clone(list), func(old moment) bool { return old.at.Before(m.at.Add(-historyPeriod)) })
	if excess := len(kept) + 1 - historyLimit; excess > 0 {
		kept = kept[excess:]
	}
	return append(kept, m)
}

// within sums the changes of the last period.
func within(changes []moment, period time.Duration, now time.Time) (sum int64) {
	for _, c := range changes {
		if c.at.After(now.Add(-period)) {
			sum += int64(c.replicas)
		}
	}
	return sum
}
