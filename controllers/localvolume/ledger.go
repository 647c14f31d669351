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
//
// Its methods are given how to list the cache rather than a list: an entry is dropped once a list shows its volume, so a list that
// is older than another worker's would show the volume neither there nor here.
type ledger struct {
	mu  sync.Mutex       // held while the cache is listed
	own map[string]entry // by the volume's name, until the cache shows as much
}

type entry struct {
	node  string
	bytes int64
}

// lister lists the cache's volumes.
type lister func() ([]*corev1.PersistentVolume, error)

// take reserves that a volume has so many bytes, if the node's volumes stay within total; otherwise it gives what is left for it.
func (l *ledger) take(name, node string, bytes, total int64, list lister) (left int64, ok bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	used, err := l.used(node, name, list)
	if err != nil {
		return 0, false, err
	}
	left = total - used
	if bytes > left {
		return max(left, 0), false, nil
	}
	if l.own == nil {
		l.own = map[string]entry{}
	}
	l.own[name] = entry{node, bytes}
	return left, true, nil
}

// giveBack ends a reservation: nothing came of it, or the volume is gone.
func (l *ledger) giveBack(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.own, name)
}

// free is what is left of a node.
func (l *ledger) free(node string, total int64, list lister) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	used, err := l.used(node, "", list)
	return max(total-used, 0), err
}

// used is what all volumes of a node but one have. Its caller holds mu.
func (l *ledger) used(node, but string, list lister) (sum int64, err error) {
	volumes, err := list()
	if err != nil {
		return 0, err
	}
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
	return sum, nil
}
