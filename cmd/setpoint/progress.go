package main

import (
	"fmt"
	"io"
	"time"

	"github.com/setpoint-io/setpoint/server/admin"
)

const (
	// terminalInterval and logInterval are how often progress shows, on a terminal
	// in place, elsewhere as a line.
	terminalInterval = 200 * time.Millisecond
	logInterval      = 5 * time.Second
)

// progress shows how far a backup is.
type progress struct {
	w        io.Writer
	terminal bool
	shown    time.Time
	any      bool
}

func newProgress(w io.Writer) *progress {
	return &progress{w: w, terminal: isTerminal(w), shown: time.Now()}
}

// update is a admin.BackupProgress.
func (p *progress) update(h *admin.BackupHeader, objects, bytes int64) {
	interval := logInterval
	if p.terminal {
		interval = terminalInterval
	}
	if time.Since(p.shown) < interval {
		return
	}
	p.shown, p.any = time.Now(), true
	// The announced size is about right, not exact.
	percent := min(99, 100*bytes/max(h.Bytes, 1))
	line := fmt.Sprintf("%d of %d objects, %s, %d%%", objects, h.Objects, mebibytes(bytes), percent)
	if p.terminal {
		fmt.Fprintf(p.w, "\r%s\x1b[K", line)
		return
	}
	fmt.Fprintln(p.w, line)
}

// end leaves the line of a terminal.
func (p *progress) end() {
	if p.terminal && p.any {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
