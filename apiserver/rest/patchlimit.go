package rest

import (
	"sync/atomic"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
)

// maxPatchCopyBytes is how much the "copy" operations of one JSON patch may add to an
// object (422 beyond it): each can double what the one before it made. It is
// upstream's limit, for patches of clients, of webhooks and of policies alike.
const maxPatchCopyBytes = 3 << 20

// limitPatchCopies sets the limit of this process, which the library leaves open. A
// lower one that somebody else has set stays.
func limitPatchCopies() {
	for {
		limit := atomic.LoadInt64(&jsonpatch.AccumulatedCopySizeLimit)
		if limit > 0 && limit <= maxPatchCopyBytes || atomic.CompareAndSwapInt64(&jsonpatch.AccumulatedCopySizeLimit, limit, maxPatchCopyBytes) {
			return
		}
	}
}
