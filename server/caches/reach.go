package caches

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/tools/cache"
)

const (
	// cacheWaitMin and cacheWaitMax are the pauses between two looks at caches
	// that are behind; a cache that is warm needs one of the first few.
	cacheWaitMin = time.Millisecond
	cacheWaitMax = 50 * time.Millisecond
	// cacheWarnAfter is how long caches may take before the log names them.
	cacheWarnAfter = 2 * time.Second
)

// CatchUp waits until the caches hold everything that was written in earlier terms: a loop that acted on less
// might act twice.
func (c *Caches) CatchUp(ctx context.Context) error {
	start := time.Now()
	revision, err := c.store.LinearizableRevision(ctx)
	if err != nil {
		return err
	}
	if err := c.reach(ctx, revision); err != nil {
		return err
	}
	c.logger.Info("caches caught up", "revision", revision, "took", time.Since(start))
	return nil
}

// reach waits until every informer has stored all changes up to the
// revision, or ctx ends. Idle informers learn of it by bookmarks.
func (c *Caches) reach(ctx context.Context, revision uint64) error {
	informers := c.all()
	behind := slices.Collect(maps.Keys(informers))
	warnAt := time.Now().Add(cacheWarnAfter)
	for pause := cacheWaitMin; ; pause = min(2*pause, cacheWaitMax) {
		c.store.Nudge()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		behind = slices.DeleteFunc(behind, func(name string) bool {
			return cacheRevision(informers[name]) >= revision
		})
		if len(behind) == 0 {
			return nil
		}
		if time.Now().After(warnAt) {
			c.logger.Warn("controllers wait: caches are behind", "revision", revision, "caches", behind)
			warnAt = time.Now().Add(cacheWarnAfter)
		}
	}
}

// cacheRevision is the revision up to which an informer's store is complete. The
// informer's own LastSyncResourceVersion runs ahead of its store.
func cacheRevision(informer cache.SharedIndexInformer) uint64 {
	revision, err := strconv.ParseUint(informer.GetStore().LastStoreSyncResourceVersion(), 10, 64)
	if err != nil {
		return 0 // nothing stored yet
	}
	return revision
}
