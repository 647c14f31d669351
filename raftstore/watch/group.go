package watch

import (
	"sort"
	"strings"
	"sync"
)

// group is what the watchers in one folder share. Its fields are guarded by
// Ring.mu, except for wake.
type group struct {
	folder string
	// revisions are those of the ring's events under folder, ascending.
	revisions revisionQueue
	// lost is the newest revision under folder that left the ring under the eyes
	// of a member. What was gone before, Watch has checked.
	lost     uint64
	watchers map[*Watcher]struct{}

	// wakeMu lets several readers of the ring arm wake at once. Whoever holds
	// Ring.mu for writing closes the channel.
	wakeMu sync.Mutex
	wake   chan struct{}
}

// folderOf returns the longest part of prefix that ends with a slash. Each key
// with the prefix lies in that folder.
func folderOf(prefix string) string {
	return prefix[:strings.LastIndexByte(prefix, '/')+1]
}

// join adds w to its group, made and filled from the ring if it is the first.
func (r *Ring) join(w *Watcher) {
	folder := folderOf(w.prefix)
	g := r.groups[folder]
	if g == nil {
		g = &group{folder: folder, watchers: map[*Watcher]struct{}{}}
		for _, e := range r.events.from(0) {
			if strings.HasPrefix(e.Key, folder) {
				g.revisions.push(e.Revision)
			}
		}
		r.groups[folder] = g
	}
	g.watchers[w] = struct{}{}
	w.group = g
}

// leave removes w, and the group with its last watcher.
func (r *Ring) leave(w *Watcher) {
	delete(w.group.watchers, w)
	if len(w.group.watchers) == 0 && r.groups[w.group.folder] == w.group {
		delete(r.groups, w.group.folder)
	}
}

// after returns the group's revisions beyond the given one.
func (g *group) after(revision uint64) []uint64 {
	all := g.revisions.from(0)
	return all[sort.Search(len(all), func(i int) bool { return all[i] > revision }):]
}

// armed returns a channel that is closed at the next change in the folder.
func (g *group) armed() <-chan struct{} {
	g.wakeMu.Lock()
	defer g.wakeMu.Unlock()
	if g.wake == nil {
		g.wake = make(chan struct{})
	}
	return g.wake
}

// broadcast wakes everyone who waits. The caller holds Ring.mu for writing.
func (g *group) broadcast() {
	if g.wake != nil {
		close(g.wake)
		g.wake = nil
	}
}
