package snapshotpace

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
		const seconds = 1
		var written bytes.Buffer
		start := time.Now()
		p := NewWriter(t.Context(), &written, nil)
		content := bytes.Repeat([]byte("0123456789abcdef"), seconds*BytesPerSecond/16)
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
		p := NewWriter(ctx, &bytes.Buffer{}, nil)
		_, err := p.Write(make([]byte, 2*BytesPerSecond))
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("ended after %v with %v", time.Since(start), err)
		}
	})
}
