package powercut

import (
	"context"
	"syscall"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// handle is an open file.
type handle struct{ node *node }

var (
	_ fs.FileReader  = (*handle)(nil)
	_ fs.FileWriter  = (*handle)(nil)
	_ fs.FileFlusher = (*handle)(nil)
)

// Read reads what was written last, synced or not.
func (h *handle) Read(_ context.Context, into []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	h.node.mu.Lock()
	defer h.node.mu.Unlock()
	if offset >= int64(len(h.node.live)) {
		return fuse.ReadResultData(nil), 0
	}
	return fuse.ReadResultData(into[:copy(into, h.node.live[offset:])]), 0
}

// Write changes memory only.
func (h *handle) Write(_ context.Context, data []byte, offset int64) (uint32, syscall.Errno) {
	errno := h.node.system.change(func() syscall.Errno {
		h.node.mu.Lock()
		defer h.node.mu.Unlock()
		h.node.write(data, offset)
		return 0
	})
	if errno != 0 {
		return 0, errno
	}
	return uint32(len(data)), 0
}

func (n *node) write(data []byte, offset int64) {
	end := offset + int64(len(data))
	if end > int64(len(n.live)) {
		n.live = append(n.live, make([]byte, end-int64(len(n.live)))...)
	}
	copy(n.live[offset:], data)
	for sector := offset / sectorBytes; sector*sectorBytes < end; sector++ {
		n.dirty[sector] = struct{}{}
	}
}

// Flush comes with close, which makes nothing durable.
func (h *handle) Flush(context.Context) syscall.Errno { return 0 }
