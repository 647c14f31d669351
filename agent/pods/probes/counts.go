package probes

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Count names what Counts counts: results of one kind of probe of one container.
type Count struct {
	Kind                      Kind
	OK                        bool
	Container, Pod, Namespace string
	UID                       types.UID
}

// Counts adds up the results of all probes of a node. The zero value is empty; it is safe for concurrent use. A nil *Counts
// counts nothing.
type Counts struct {
	mu sync.Mutex
	by map[Count]uint64
}

func (c *Counts) add(kind Kind, ok bool, pod *corev1.Pod, container string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[Count]uint64{}
	}
	c.by[Count{kind, ok, container, pod.Name, pod.Namespace, pod.UID}]++
}

// Forget drops what was counted of a pod that is gone.
func (c *Counts) Forget(uid types.UID) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for count := range c.by {
		if count.UID == uid {
			delete(c.by, count)
		}
	}
}

// All is a copy of everything.
func (c *Counts) All() map[Count]uint64 {
	out := map[Count]uint64{}
	if c == nil {
		return out
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for count, n := range c.by {
		out[count] = n
	}
	return out
}
