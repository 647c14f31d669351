package localvolume

import (
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/internal/localvolume"
)

// nodeAttribute names, among a volume's attributes, the node that has it. Nobody can change those of a volume.
const nodeAttribute = "node"

func isOurs(v *corev1.PersistentVolume) bool {
	return v.Spec.CSI != nil && v.Spec.CSI.Driver == localvolume.Driver && v.Spec.CSI.VolumeAttributes[nodeAttribute] != "" &&
		localvolume.Valid(v.Spec.CSI.VolumeHandle)
}

func nodeOf(v *corev1.PersistentVolume) string { return v.Spec.CSI.VolumeAttributes[nodeAttribute] }

func bytesOf(v *corev1.PersistentVolume) int64 {
	capacity := v.Spec.Capacity[corev1.ResourceStorage]
	return capacity.Value()
}

// ledger knows how much of each node is taken: what the cache shows, and what was written since. The zero value is ready.
type ledger struct {
	mu  sync.Mutex
	own map[string]entry // by the volume's name, until the cache shows as much
}

type entry struct {
	node  string
	bytes int64
}

// take reserves that a volume has so many bytes, if the node's volumes stay within total; otherwise it gives what is left for it.
func (l *ledger) take(name, node string, bytes, total int64, volumes []*corev1.PersistentVolume) (left int64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	left = total - l.used(node, name, volumes)
	if bytes > left {
		return max(left, 0), false
	}
	if l.own == nil {
		l.own = map[string]entry{}
	}
	l.own[name] = entry{node, bytes}
	return left, true
}

// giveBack ends a reservation: nothing came of it, or the volume is gone.
func (l *ledger) giveBack(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.own, name)
}

// free is what is left of a node.
func (l *ledger) free(node string, total int64, volumes []*corev1.PersistentVolume) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(total-l.used(node, "", volumes), 0)
}

// used is what all volumes of a node but one have. Its caller holds mu.
func (l *ledger) used(node, but string, volumes []*corev1.PersistentVolume) (sum int64) {
	for _, v := range volumes {
		if !isOurs(v) || nodeOf(v) != node {
			continue
		}
		bytes := bytesOf(v)
		if own, ok := l.own[v.Name]; ok && own.bytes <= bytes {
			delete(l.own, v.Name)
		}
		if _, grows := l.own[v.Name]; !grows && v.Name != but {
			sum += bytes
		}
	}
	for name, own := range l.own {
		if own.node == node && name != but {
			sum += own.bytes
		}
	}
	return sum
}
