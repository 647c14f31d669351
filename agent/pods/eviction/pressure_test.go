package eviction

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// policy has a hard and a soft threshold of memory, and one of disks.
func policy(t *testing.T) Policy {
	t.Helper()
	list, err := ParseThresholds(Statements{
		Hard: map[string]string{"memory.available": "100", "nodefs.available": "10%"}, Soft: map[string]string{"memory.available": "200"},
		SoftGracePeriod: map[string]string{"memory.available": "1m"}, MinimumReclaim: map[string]string{"nodefs.available": "50"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return Policy{Thresholds: list, Transition: 5 * time.Minute, MaxGraceSeconds: 20}
}

// TestWhenAThresholdIsDue follows one node through an hour. Soft thresholds wait for their grace period, what was reclaimed has
// to be more than what was missing, and conditions last.
func TestWhenAThresholdIsDue(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var m memory
	var now Conditions
	const both = "[DiskPressure MemoryPressure]"
	for _, c := range []struct {
		after        time.Duration
		memory, disk int64
		due          string
		conditions   string
		news         bool
	}{
		{0, 200, 100, "", "[]", false},
		{time.Minute, 199, 100, "", "[MemoryPressure]", true},
		{2*time.Minute - 1, 199, 100, "", "[MemoryPressure]", false},
		{2 * time.Minute, 199, 100, "memory.available<200 for 1m0s", "[MemoryPressure]", false},
		{3 * time.Minute, 200, 100, "", "[MemoryPressure]", false},
		{4 * time.Minute, 199, 100, "", "[MemoryPressure]", false}, // the period begins again
		{5 * time.Minute, 50, 99, "memory.available<100, memory.available<200 for 1m0s, nodefs.available<100 +50", both, true},
		{6 * time.Minute, 500, 149, "nodefs.available<100 +50", both, false}, // not enough reclaimed
		{7 * time.Minute, 500, 150, "", both, false},
		{8 * time.Minute, 500, 100, "", both, false}, // that was enough
		{10*time.Minute - 1, 500, 500, "", both, false},
		{10 * time.Minute, 500, 500, "", "[DiskPressure]", true},
		{time.Hour, 500, 500, "", "[]", true},
	} {
		seen := Observations{MemoryAvailable: {1000, c.memory}, NodeFsAvailable: {1000, c.disk}}
		due := lines(m.look(policy(t), seen, began.Add(c.after)))
		news := now.set(m.seen)
		if got := text(now.Now()); due != c.due || got != c.conditions || news != c.news {
			t.Errorf("after %v: due %q, conditions %s, news %v; want %q, %s, %v", c.after, due, got, news, c.due, c.conditions, c.news)
		}
	}
}

func text(list []corev1.NodeConditionType) string {
	out := "["
	for i, c := range list {
		if i > 0 {
			out += " "
		}
		out += string(c)
	}
	return out + "]"
}

// TestWhatCannotBeSeenCrossesNothing: a machine that does not tell loses no pods.
func TestWhatCannotBeSeenCrossesNothing(t *testing.T) {
	var m memory
	if due := m.look(policy(t), nil, time.Now()); len(due) != 0 || len(m.seen) != 0 {
		t.Errorf("due %v, seen %v", due, m.seen)
	}
}
