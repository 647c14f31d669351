package replicaset

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

// surplus picks the n pods whose loss costs least.
func surplus(active, related []*corev1.Pod, n int, now time.Time) []*corev1.Pod {
	if n >= len(active) {
		return active
	}
	perNode := podsPerNode(active, related)
	ranked := slices.Clone(active)
	slices.SortStableFunc(ranked, func(a, b *corev1.Pod) int { return compareLoss(a, b, perNode, now) })
	return ranked[:n]
}

// podsPerNode counts own and related active pods on each node.
func podsPerNode(active, related []*corev1.Pod) map[string]int {
	perNode := map[string]int{}
	for _, list := range [][]*corev1.Pod{active, related} {
		for _, p := range list {
			if podstate.Active(p) {
				perNode[p.Spec.NodeName]++
			}
		}
	}
	return perNode
}

// compareLoss is negative when a should be deleted before b. The order of the
// questions is the one Kubernetes documents: not placed, not running, not ready,
// cheaper by annotation, on the fuller node, ready for a shorter time, restarted
// more often, younger. Ages count by powers of two, so that among pods of about
// the same age the uid decides, not the order of creation (upstream's
// ActivePodsWithRanks).
func compareLoss(a, b *corev1.Pod, perNode map[string]int, now time.Time) int {
	return cmp.Or(
		podstate.CompareProgress(a, b),
		cmp.Compare(deletionCost(a), deletionCost(b)),
		cmp.Compare(perNode[b.Spec.NodeName], perNode[a.Spec.NodeName]),
		compareReadySince(a, b, now),
		podstate.CompareRestarts(a, b),
		compareTimes(a, b, a.CreationTimestamp.Time, b.CreationTimestamp.Time, now),
		cmp.Compare(a.UID, b.UID),
	)
}

// deletionCost reads the pod-deletion-cost annotation; anything unreadable
// counts as 0, as validation of annotations cannot refuse it.
func deletionCost(p *corev1.Pod) int32 {
	cost, err := strconv.ParseInt(p.Annotations[corev1.PodDeletionCost], 10, 32)
	if err != nil {
		return 0
	}
	return int32(cost)
}

func compareReadySince(a, b *corev1.Pod, now time.Time) int {
	if !podstate.Ready(a) || !podstate.Ready(b) {
		return 0
	}
	return compareTimes(a, b, podstate.ReadySince(a), podstate.ReadySince(b), now)
}

// compareTimes puts the younger first; an unknown time counts as youngest. Between times that differ, but not by much, the uid decides.
func compareTimes(a, b *corev1.Pod, at, bt, now time.Time) int {
	switch {
	case at.Equal(bt):
		return 0
	case at.IsZero() || bt.IsZero():
		return podstate.CompareBool(!at.IsZero(), !bt.IsZero())
	}
	return cmp.Or(cmp.Compare(ageClass(at, now), ageClass(bt, now)), cmp.Compare(a.UID, b.UID))
}

// ageClass is the base-2 logarithm of the age in nanoseconds, rounded down.
func ageClass(t, now time.Time) int {
	age := now.Sub(t)
	if age <= 0 {
		return -1
	}
	return int(math.Log2(float64(age)))
}
