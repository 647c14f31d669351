package simulated

import (
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Outage is which nodes are switched off: they renew no Lease, and nothing happens to their pods. The zero value is
// none; its methods may be called from any goroutine.
type Outage struct {
	mu  sync.Mutex
	off map[string]bool
}

// Set switches a node off, or on again; with its next Lease it is Ready and looks at all its pods.
func (o *Outage) Set(node string, off bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.off == nil {
		o.off = map[string]bool{}
	}
	o.off[node] = off
}

// Off reports whether a node is switched off. A nil Outage has none.
func (o *Outage) Off(node string) bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.off[node]
}

// catchUp looks at all pods of a node that was off or lost.
func (f *fleet) catchUp(node string) {
	pods, err := f.byNode.ByIndex(nodeIndex, node)
	if err != nil {
		return // the index is there
	}
	for _, obj := range pods {
		if pod, ok := obj.(*corev1.Pod); ok && f.needsWork(pod) {
			f.queue.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
}
