package endpoints

import (
	"sync"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// version is a write: of which resourceVersion it made which.
type version struct{ was, is string }

// versions remembers the last write of each Service's Endpoints. There is one at most for
// each Service.
type versions struct {
	mu    sync.Mutex
	byKey map[reconcile.Key]version
}

func (v *versions) set(key reconcile.Key, written version) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.byKey[key] = written
}

func (v *versions) forget(key reconcile.Key) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.byKey, key)
}

// isLatest says that the version is the one that was written here last.
func (v *versions) isLatest(key reconcile.Key, resourceVersion string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return resourceVersion == v.byKey[key].is
}

// isOutdated says that the last write was to replace this version, which it is not if
// the write changed nothing.
func (v *versions) isOutdated(key reconcile.Key, resourceVersion string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	last := v.byKey[key]
	return resourceVersion == last.was && last.was != last.is
}
