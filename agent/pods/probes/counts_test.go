package probes

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestResultsAreCountedUntilTheirPodIsGone(t *testing.T) {
	var c Counts
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "d", Name: "p", UID: "u"}}
	for _, ok := range []bool{true, false, true} {
		c.add(Liveness, ok, pod, "c")
	}
	c.add(Liveness, true, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "other"}}, "c")
	if n := c.All()[Count{Liveness, true, "c", "p", "d", "u"}]; n != 2 {
		t.Errorf("%d successes", n)
	}
	c.Forget("u")
	if all := c.All(); len(all) != 1 {
		t.Errorf("left: %v", all)
	}
	var none *Counts
	none.add(Liveness, true, pod, "c")
	none.Forget("u")
	if len(none.All()) != 0 {
		t.Error("nothing counts")
	}
}
