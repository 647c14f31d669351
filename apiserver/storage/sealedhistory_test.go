package storage

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/history"
)

// TestSecretsInHistoryAreEncrypted: what a Secret was lies on the disk as the store had it, and is read again with its key alone.
func TestSecretsInHistoryAreEncrypted(t *testing.T) {
	store, log, ring := newSealedStore(t, box("k"), plainly)
	dir := t.TempDir()
	kept, err := history.Open(history.Config{Dir: dir, Source: log, Retention: time.Hour, SizeBytes: 1 << 20, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { kept.Run(ctx); close(ended) }()
	table := store.Table(secrets)
	put(t, table, marked("a"))
	changed := marked("a")
	changed.Data["password"] = []byte("another")
	put(t, table, changed)
	changes, _, _, err := kept.Changes(t.Context(), "/core/secrets/n/a", 0, 10)
	if err != nil || len(changes) != 2 || changes[1].Before.Value[0] != command.EncodingEncrypted {
		t.Fatal(err, changes)
	}
	store.KeepHistory(kept)
	past, _, _, err := table.Past(t.Context(), "n", "a", 0, 10)
	if err != nil || len(past) != 2 {
		t.Fatal(err, past)
	}
	isMarked(t, "what it was", past[1].Before, nil)
	ring.turn(box("another"), plainly)
	fresh := sealedStore(log, ring)
	fresh.KeepHistory(kept)
	past, _, _, err = fresh.Table(secrets).Past(t.Context(), "n", "a", 0, 10)
	if err != nil || len(past) != 2 || past[1].Unknown == "" || past[1].Before != nil || past[1].Time.IsZero() {
		t.Errorf("the key is gone: %v %+v", err, past)
	}
	cancel()
	<-ended
	raw := inflated(t, dir)
	if !bytes.Contains(raw, []byte("/core/secrets/n/a")) || !bytes.Contains(raw, []byte("k8s:enc:secretbox:v1:k:")) || bytes.Contains(raw, []byte(marker)) {
		t.Errorf("on the disk: %q", raw)
	}
}

// inflated is the only block of the only file of history.
func inflated(t *testing.T, dir string) []byte {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.history"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()
	raw, err := decoder.DecodeAll(text[bytes.Index(text, []byte{0x28, 0xb5, 0x2f, 0xfd}):], nil)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
