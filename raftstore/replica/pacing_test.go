package replica

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestSnapshotIsWrittenAtItsRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const seconds = 3
		var written bytes.Buffer
		start := time.Now()
		p := &pacedWriter{ctx: t.Context(), w: &written, free: start}
		content := bytes.Repeat([]byte("0123456789abcdef"), seconds*snapshotBytesPerSecond/16)
		if n, err := p.Write(content); err != nil || n != len(content) {
			t.Fatalf("wrote %d of %d bytes: %v", n, len(content), err)
		}
		if took := time.Since(start); took != seconds*time.Second {
			t.Errorf("took %v, want %d s", took, seconds)
		}
		if !bytes.Equal(written.Bytes(), content) {
			t.Error("other bytes were written")
		}
	})
}

func TestClosingEndsASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		p := &pacedWriter{ctx: ctx, w: &bytes.Buffer{}, free: start}
		_, err := p.Write(make([]byte, 4*snapshotBytesPerSecond))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("ended after %v with %v", time.Since(start), err)
		}
	})
}
