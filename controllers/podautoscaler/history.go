package podautoscaler

import (
	"slices"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
)

// historyLimit bounds each list of an autoscaler; one that is changed so often forgets the oldest.
const historyLimit = 1024

// moment is a number of replicas, or a change of it, and when.
type moment struct {
	replicas int32
	at       time.Time
	// outdated is a change that the policies of some pass did not look back to: its place is free.
	outdated bool
}

// history is what an autoscaler recommended and did. It is a value: record returns another one.
type history struct {
	recommendations []moment // before they were stabilized
	ups, downs      []moment // by how many
}

// begun is the history with the number of replicas as first recommendation, if there was none.
func (h history) begun(current int32, now time.Time) history {
	if h.recommendations == nil {
		h.recommendations = []moment{{replicas: current, at: now}}
	}
	return h
}

// recommended adds a recommendation; no window looks back to what was before from.
func (h history) recommended(replicas int32, now, from time.Time) history {
	h.recommendations = record(h.recommendations, moment{replicas: replicas, at: now}, func(old moment) bool { return old.at.Before(from) })
	return h
}

// changed adds a change.
func (h history) changed(from, to int32, now time.Time, behavior *autoscalingv2.HorizontalPodAutoscalerBehavior) history {
	if to > from {
		h.ups = recordChange(h.ups, moment{replicas: to - from, at: now}, behavior.ScaleUp)
	} else {
		h.downs = recordChange(h.downs, moment{replicas: from - to, at: now}, behavior.ScaleDown)
	}
	return h
}

func recordChange(list []moment, m moment, rules *autoscalingv2.HPAScalingRules) []moment {
	list = slices.Clone(list)
	from := m.at.Add(-longest(rules))
	for i := range list {
		list[i].outdated = list[i].outdated || list[i].at.Before(from)
	}
	return record(list, m, func(old moment) bool { return old.outdated })
}

// longest is the longest period of some policies.
func longest(rules *autoscalingv2.HPAScalingRules) (period time.Duration) {
	if rules != nil {
		for _, p := range rules.Policies {
			period = max(period, time.Duration(p.PeriodSeconds)*time.Second)
		}
	}
	return period
}

// record puts a moment in the place of the last one that is outdated, or at the end, in a list of its own. What was outdated by the windows
// of a pass may be gone when a later generation has longer ones, as with upstream.
func record(list []moment, m moment, outdated func(moment) bool) []moment {
	list = slices.Clone(list)
	for i, old := range slices.Backward(list) {
		if outdated(old) {
			list[i] = m
			return list
		}
	}
	return append(list[max(0, len(list)+1-historyLimit):], m)
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
