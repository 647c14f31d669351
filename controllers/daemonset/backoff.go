package daemonset

import (
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// pauseMin is how long the second failed pod of a node stays after the first
	// was deleted. Each further one stays twice as long, up to pauseMax.
	pauseMin = time.Second
	pauseMax = 15 * time.Minute
)

// backoff slows down the replacement of pods that fail again and again: a kubelet
// that refuses every pod would otherwise be asked without end. A new generation of
// the DaemonSet begins anew, as what was wrong may be mended.
type backoff struct {
	mu    sync.Mutex
	nodes map[types.UID]map[string]pause
}

// pause is that of one node.
type pause struct {
	generation int64
	length     time.Duration
	since      time.Time
}

func newBackoff() *backoff { return &backoff{nodes: map[types.UID]map[string]pause{}} }

// at is the pause of a node; zero when there is none or it was long ago. The caller
// holds mu.
func (b *backoff) at(ds *appsv1.DaemonSet, node string, now time.Time) pause {
	p := b.nodes[ds.UID][node]
	if p.generation != ds.Status.ObservedGeneration || now.Sub(p.since) > 2*pauseMax {
		return pause{}
	}
	return p
}

// wait is how long a failed pod of a node has to stay.
func (b *backoff) wait(ds *appsv1.DaemonSet, node string, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.at(ds, node, now)
	return max(0, p.length-now.Sub(p.since))
}

// next notes that a failed pod of a node is deleted now.
func (b *backoff) next(ds *appsv1.DaemonSet, node string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.nodes[ds.UID] == nil {
		b.nodes[ds.UID] = map[string]pause{}
	}
	length := min(pauseMax, max(pauseMin, 2*b.at(ds, node, now).length))
	b.nodes[ds.UID][node] = pause{ds.Status.ObservedGeneration, length, now}
}

// forget drops what is known of a DaemonSet.
func (b *backoff) forget(ds types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.nodes, ds)
}

// forgetNode drops what is known of a node.
func (b *backoff) forgetNode(node string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, nodes := range b.nodes {
		delete(nodes, node)
	}
}
