package nodelifecycle

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// eviction is what has to happen to the pods of one node.
type eviction struct {
	due []*corev1.Pod
	// waiting are the uids of those that are going to be due.
	waiting map[types.UID]bool
	// again is when the next pod is due; 0 for never.
	again time.Duration
}

// evictions finds the pods that no longer tolerate a node's NoExecute taints.
// Tolerated seconds count from the taint or the start of the term, whichever is
// later. It is pure.
func evictions(taints []corev1.Taint, pods []*corev1.Pod, term, now time.Time) eviction {
	e := eviction{waiting: map[types.UID]bool{}}
	for _, p := range pods {
		if p.DeletionTimestamp != nil || p.Annotations[corev1.MirrorPodAnnotationKey] != "" {
			continue
		}
		at, goes := deadline(taints, p.Spec.Tolerations, term, now)
		switch wait := at.Sub(now); {
		case !goes:
		case wait <= 0:
			e.due = append(e.due, p)
		default:
			e.waiting[p.UID] = true
			e.again = soonest(e.again, wait)
		}
	}
	return e
}

// deadline is when a pod with these tolerations has to leave; false for never.
func deadline(taints []corev1.Taint, tolerations []corev1.Toleration, term, now time.Time) (at time.Time, goes bool) {
	for i := range taints {
		taint := &taints[i]
		seconds, tolerated := toleratedFor(taint, tolerations)
		if tolerated && seconds == nil {
			continue
		}
		leave := now
		if tolerated {
			leave = latest(addedAt(taint, now), term).Add(time.Duration(max(0, *seconds)) * time.Second)
		}
		if !goes || leave.Before(at) {
			at, goes = leave, true
		}
	}
	return at, goes
}

// toleratedFor is the shortest time for which any toleration accepts the taint;
// nil seconds mean forever.
func toleratedFor(taint *corev1.Taint, tolerations []corev1.Toleration) (seconds *int64, tolerated bool) {
	for i := range tolerations {
		t := &tolerations[i]
		if !tolerates(t, taint) {
			continue
		}
		tolerated = true
		if t.TolerationSeconds != nil && (seconds == nil || *t.TolerationSeconds < *seconds) {
			seconds = t.TolerationSeconds
		}
	}
	return seconds, tolerated
}

// tolerates is Kubernetes' rule: effect, key and value must match, where empty
// matches all.
func tolerates(t *corev1.Toleration, taint *corev1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect || t.Key != "" && t.Key != taint.Key {
		return false
	}
	switch t.Operator {
	case corev1.TolerationOpExists:
		return true
	case "", corev1.TolerationOpEqual:
		return t.Value == taint.Value
	default:
		return false
	}
}

func addedAt(taint *corev1.Taint, now time.Time) time.Time {
	if taint.TimeAdded == nil {
		return now
	}
	return taint.TimeAdded.Time
}

// noExecute are the NoExecute taints that count now. The system's own count
// only while the node still looks bad: an old taint on a node that is back must
// not cost it its pods before the taint is removed.
func noExecute(taints []corev1.Taint, bad bool) []corev1.Taint {
	var out []corev1.Taint
	for _, t := range taints {
		ours := t.Key == corev1.TaintNodeNotReady || t.Key == corev1.TaintNodeUnreachable
		if t.Effect == corev1.TaintEffectNoExecute && (bad || !ours) {
			out = append(out, t)
		}
	}
	return out
}
