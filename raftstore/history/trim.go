package history

import (
	"errors"
	"slices"
	"syscall"
	"time"
)

// partsOfRetention is how many files the kept time has at least: the oldest is what is trimmed.
const partsOfRetention = 24

var (
	errCrowded = errors.New("history: the disk has little room, which others need")
	errClosed  = errors.New("history: this server stops")
)

func (h *History) crowded() bool { return h.config.Crowded != nil && h.config.Crowded() }

// noRoom reports whether a write failed for something that a removed file gives back.
func noRoom(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// fileIsOld reports whether the newest file began so long ago that another is begun, for the sake of trimming.
func (h *History) fileIsOld() bool {
	return time.Since(h.files[len(h.files)-1].begun) >= h.config.Retention/partsOfRetention
}

// trim removes the oldest file if they are too many bytes, if it was written last longer ago than changes are kept, or if the disk has
// little room. It is one at a look: what was just removed is not yet in the measure of the room, and a clock that jumps costs little.
func (h *History) trim(now time.Time) {
	for len(h.files) > 1 && h.bytes() > h.config.SizeBytes {
		h.dropOldest()
	}
	if len(h.files) > 0 && (h.crowded() || now.Sub(h.files[0].written) > h.config.Retention) {
		h.dropOldest()
	}
}

// dropOldest removes the oldest file.
func (h *History) dropOldest() {
	h.mu.Lock()
	f := h.files[0]
	for _, b := range f.blocks {
		delete(h.damaged, b)
	}
	h.files = h.files[1:]
	h.past.forget()
	h.oldest = h.open.after
	switch {
	case len(h.files) > 0:
		h.oldest = h.files[0].blocks[0].after
	case h.closing != nil:
		h.oldest = h.closing.after
	}
	h.mu.Unlock()
	if err := f.remove(); err != nil {
		h.config.Logger.Warn("history cannot be trimmed", "file", f.path, "err", err)
	}
	h.letGo(f)
}

// letGo closes a file that history has no more, once the last reader is done.
func (h *History) letGo(f *file) {
	h.mu.Lock()
	f.gone = true
	unread := f.readers == 0
	h.mu.Unlock()
	if unread {
		_ = f.handle.Close() // nothing is written to it
	}
}

// hold keeps files open for a reader. The caller holds mu, and calls release.
func (h *History) hold() []*file {
	held := slices.Clone(h.files)
	for _, f := range held {
		f.readers++
	}
	return held
}

// release ends a hold.
func (h *History) release(held []*file) {
	h.mu.Lock()
	var unread []*file
	for _, f := range held {
		if f.readers--; f.readers == 0 && f.gone {
			unread = append(unread, f)
		}
	}
	h.mu.Unlock()
	_ = closeAll(unread) // nothing is written to them
}

// bytes is what all files take. The caller is Run, or holds mu.
func (h *History) bytes() (n int64) {
	for _, f := range h.files {
		n += f.bytes
	}
	return n
}
