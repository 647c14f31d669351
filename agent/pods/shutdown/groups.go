package shutdown

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Period is how long pods of at least this priority, and less than that of the next Period, have to end.
type Period struct {
	Priority int32
	Seconds  int64
}

// systemCritical is the least priority of critical pods.
const systemCritical = 2_000_000_000

// Split makes the periods of shutdownGracePeriod: the last part of it is for critical pods. They are nil if there is no time.
func Split(all, critical time.Duration) []Period {
	if all <= 0 || critical > all {
		return nil
	}
	return []Period{{0, int64((all - critical) / time.Second)}, {systemCritical, int64(critical / time.Second)}}
}

// Total is how long all groups may take.
func Total(periods []Period) time.Duration {
	var sum int64
	for _, p := range periods {
		sum += p.Seconds
	}
	return time.Duration(sum) * time.Second
}

// group is what ends together.
type group struct {
	Period
	pods []*corev1.Pod
}

// groups are those that have pods, the least priority first. A pod of less priority than all periods is in the first.
func groups(periods []Period, pods []*corev1.Pod) []group {
	var all []group
	for _, p := range periods {
		all = append(all, group{Period: p})
	}
	slices.SortStableFunc(all, func(a, b group) int { return cmp.Compare(a.Priority, b.Priority) })
	for _, pod := range pods {
		var priority int32
		if pod.Spec.Priority != nil {
			priority = *pod.Spec.Priority
		}
		at := 0
		for i := range all {
			if all[i].Priority <= priority {
				at = i
			}
		}
		all[at].pods = append(all[at].pods, pod)
	}
	return slices.DeleteFunc(all, func(g group) bool { return len(g.pods) == 0 })
}

// grace is what one pod has: its own time, if that is less than its group's.
func (g group) grace(pod *corev1.Pod) int64 {
	if own := pod.Spec.TerminationGracePeriodSeconds; own != nil {
		return min(*own, g.Seconds)
	}
	return g.Seconds
}
