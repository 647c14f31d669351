package eviction

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// memory is what has to be remembered from look to look.
type memory struct {
	// first is when a threshold was crossed first, by its index in the policy; those that are kept are not in it.
	first map[int]time.Time
	// due are those that were crossed for their whole grace period at the last look: they stay crossed until MinReclaim is free too.
	due []int
	// seen is when a condition was seen last.
	seen map[corev1.NodeConditionType]time.Time
}

// look takes in what was seen at now, and returns the thresholds for which something has to be done, the most urgent one first.
func (m *memory) look(p Policy, seen Observations, now time.Time) []Threshold {
	first := map[int]time.Time{}
	conditions := maps.Clone(m.seen)
	if conditions == nil {
		conditions = map[corev1.NodeConditionType]time.Time{}
	}
	var due []int
	var out []Threshold
	for i, t := range p.Thresholds {
		if !t.crossed(seen, slices.Contains(m.due, i)) {
			continue
		}
		k, _ := kindOf(t.Signal)
		conditions[k.condition] = now
		began, ok := m.first[i]
		if !ok {
			began = now
		}
		first[i] = began
		if now.Sub(began) >= t.Grace {
			due, out = append(due, i), append(out, t)
		}
	}
	maps.DeleteFunc(conditions, func(_ corev1.NodeConditionType, at time.Time) bool { return now.Sub(at) >= p.Transition })
	m.first, m.due, m.seen = first, due, conditions
	return out
}

// Conditions are those under which the node is right now. The zero value has none; it is safe for concurrent use.
type Conditions struct {
	mu  sync.Mutex
	now []corev1.NodeConditionType
}

// Now lists MemoryPressure, DiskPressure and PIDPressure, sorted by name, as of the last look.
func (c *Conditions) Now() []corev1.NodeConditionType {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.now)
}

// set reports whether that is news.
func (c *Conditions) set(seen map[corev1.NodeConditionType]time.Time) bool {
	now := slices.Sorted(maps.Keys(seen))
	c.mu.Lock()
	defer c.mu.Unlock()
	changed := !slices.Equal(now, c.now)
	c.now = now
	return changed
}
