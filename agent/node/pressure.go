package node

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// pressureTransition is how long a pressure counts after it was seen last, upstream's default: what frees a resource often
// does so for a moment only.
const pressureTransition = 5 * time.Minute

// Pressure remembers under which pressure this machine is. It is safe for concurrent use.
type Pressure struct {
	mu   sync.Mutex
	seen map[corev1.NodeConditionType]time.Time // when last
}

// Now lists MemoryPressure, DiskPressure and PIDPressure, sorted by name, as of the last look.
func (p *Pressure) Now() []corev1.NodeConditionType {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.seen))
}

// saw adds a look at the machine and forgets what passed long enough ago.
func (p *Pressure) saw(now time.Time, found pressures) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil {
		p.seen = map[corev1.NodeConditionType]time.Time{}
	}
	for kind, present := range map[corev1.NodeConditionType]bool{
		corev1.NodeMemoryPressure: found.memory, corev1.NodeDiskPressure: found.disk, corev1.NodePIDPressure: found.pids,
	} {
		if present {
			p.seen[kind] = now
		}
		if last, ok := p.seen[kind]; ok && now.Sub(last) >= pressureTransition {
			delete(p.seen, kind)
		}
	}
}

func (p *Pressure) has(kind corev1.NodeConditionType) bool { return slices.Contains(p.Now(), kind) }
