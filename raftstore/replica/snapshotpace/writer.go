package snapshotpace

import (
	"context"
	"io"
	"os"
	"time"
)

const (
	// BytesPerSecond is the most a snapshot takes of the disk. Unlimited, it
	// fills the disk's queue, and every commit waits behind it.
	BytesPerSecond = 64 << 20
	// flushBytes is how much of a snapshot may wait in memory for the disk.
	// All at the end would take a second, and the log's syncs with it.
	flushBytes = 1 << 20
	// pageBytes divides the size of a page of any file cache.
	pageBytes = 4096
)

// Writer writes a snapshot at a bounded rate and flushes it on the way. It is
// used by one goroutine.
type Writer struct {
	ctx  context.Context
	w    io.Writer
	file *os.File // nil for a snapshot in memory
	// written bytes are in w, those before flushed on the disk.
	written, flushed int64
	// free is when the bytes written so far are paid for.
	free time.Time
}

// NewWriter returns a writer to w that ends with ctx. The file is another handle of
// what w writes to, nil if that is not a file; Close closes it.
func NewWriter(ctx context.Context, w io.Writer, file *os.File) *Writer {
	return &Writer{ctx: ctx, w: w, file: file, free: time.Now()}
}

// Write implements io.Writer. It waits while it is ahead of its rate.
func (p *Writer) Write(b []byte) (written int, err error) {
	for len(b) > 0 && err == nil {
		var n int
		n, err = p.w.Write(b[:min(len(b), flushBytes)])
		written, b = written+n, b[n:]
		if err == nil {
			err = p.pay(int64(n))
		}
	}
	return written, err
}

// pay flushes n bytes more, and waits for their time.
func (p *Writer) pay(n int64) error {
	p.free = p.free.Add(time.Duration(n) * time.Second / BytesPerSecond)
	p.written += n
	if p.written-p.flushed < flushBytes {
		return p.ctx.Err()
	}
	p.flush()
	return p.wait()
}

// flush sends what was written to the disk. Unlike a sync it leaves the file
// system's journal alone, for which the log's syncs would wait. It is a hint: the
// snapshot becomes durable, or fails, by the sync at its end.
func (p *Writer) flush() {
	from := p.flushed
	// The writer below may hold back the end of the last page.
	p.flushed = p.written &^ (pageBytes - 1)
	if p.file == nil {
		return
	}
	writeOut(p.file, from, p.written-from)
}

func (p *Writer) wait() error {
	now := time.Now()
	if p.free.Before(now) {
		// Time lost to a slow disk is not made up for.
		p.free = now
	}
	timer := time.NewTimer(p.free.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return p.ctx.Err()
	case <-p.ctx.Done():
		return p.ctx.Err()
	}
}

// Close closes the file it was given.
func (p *Writer) Close() {
	if p.file != nil {
		p.file.Close()
	}
}
