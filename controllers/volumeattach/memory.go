package volumeattach

import (
	"maps"
	"sync"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
)

// memory is what a term keeps of each node between passes. It holds nothing of nodes that have no attachment and wait for
// none, so it is bounded by the attachments and the pods that wait.
type memory struct {
	mu    sync.Mutex
	nodes map[string]*nodeMemory
	// gone are attachments that were deleted, or perhaps were, until the cache shows it.
	gone map[types.UID]bool
}

type nodeMemory struct {
	inUse  map[string]bool         // what the node said last that it uses, as names of attachments
	unused map[types.UID]time.Time // attachments that no pod uses, and since when
	said   map[string]string       // the last event about each attachment, so that none is repeated
}

// inUse are the attachments that a node uses. Of a node that is gone it is what it said last, and all if nothing is known of it.
func (m *memory) inUse(view nodeView) map[string]bool {
	used := map[string]bool{}
	if view.node != nil {
		for _, name := range view.node.Status.VolumesInUse {
			used[attachmentNamed(name, view.name)] = true
		}
		return used
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.nodes[view.name]; known != nil && known.inUse != nil {
		return known.inUse
	}
	for _, h := range view.has {
		used[h.attachment.Name] = true
	}
	return used
}

// unusedSince is since when no pod uses an attachment; zero if one does, or it is not known yet.
func (m *memory) unusedSince(node string, a *storagev1.VolumeAttachment) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.nodes[node]; known != nil {
		return known.unused[a.UID]
	}
	return time.Time{}
}

// keep remembers what a pass has seen.
func (m *memory) keep(node string, view nodeView, plan nodePlan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(view.has)+len(view.wants) == 0 {
		delete(m.nodes, node)
		return
	}
	was, is := m.nodes[node], &nodeMemory{unused: map[types.UID]time.Time{}, said: map[string]string{}}
	if was == nil {
		was = &nodeMemory{}
	}
	is.inUse = was.inUse
	if view.node != nil {
		is.inUse = view.inUse
	}
	for _, a := range plan.unused {
		is.unused[a.UID] = view.now
		if since, ok := was.unused[a.UID]; ok {
			is.unused[a.UID] = since
		}
	}
	for _, w := range view.wants {
		if said, ok := was.said[w.name]; ok {
			is.said[w.name] = said
		}
	}
	if m.nodes == nil {
		m.nodes = map[string]*nodeMemory{}
	}
	m.nodes[node] = is
}

// news tells whether a text is not what was said last about an attachment, and keeps it.
func (m *memory) news(node, attachment, text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.nodes[node]
	if known == nil || known.said[attachment] == text {
		return false
	}
	known.said[attachment] = text
	return true
}

// deletes keeps that an attachment is about to be deleted.
func (m *memory) deletes(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.gone == nil {
		m.gone = map[types.UID]bool{}
	}
	m.gone[uid] = true
}

// deleted are the attachments that were deleted, or perhaps were, and that the cache did not show as such.
func (m *memory) deleted() map[types.UID]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.gone)
}

// shown forgets an attachment whose deletion the cache shows.
func (m *memory) shown(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.gone, uid)
}
