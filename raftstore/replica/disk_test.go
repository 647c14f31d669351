package replica

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/setpoint-io/setpoint/raftstore/replica/marks"
	"github.com/setpoint-io/setpoint/raftstore/replica/termstore"
)

// TestSetAsideIncludesTheWatermark: a damaged watermark was left where it was, so the new member
// found it again at each start and never came back.
func TestSetAsideIncludesTheWatermark(t *testing.T) {
	files := Files{Dir: t.TempDir(), Logger: slog.New(slog.DiscardHandler)}
	if err := os.MkdirAll(string(files.marks()), dirMode); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(string(files.marks()), "watermark.json"), []byte(`{"index":1,"checksum":0}`), fileMode); err != nil {
		t.Fatal(err)
	}
	if _, err := files.marks().LoadWatermark(); err == nil {
		t.Fatal("a damaged watermark was read")
	}
	if err := files.setAside(&marks.Marker{ServerID: "a+1"}); err != nil {
		t.Fatal(err)
	}
	if mark, err := files.marks().LoadWatermark(); err != nil || mark.Index != 0 {
		t.Errorf("%+v, %v", mark, err)
	}
}

// TestEveryStableKeyIsKnown: the check of the file took the id of a member that had come back for
// a damaged key, so that such a server could start once and never again.
func TestEveryStableKeyIsKnown(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		storage, err := OpenFiles(t.Context(), dir, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range stableKeys {
			if err := storage.stable.Set([]byte(key), []byte("12345678")); err != nil {
				t.Fatal(err)
			}
		}
		if err := storage.stable.Set([]byte(termstore.WriterKey), []byte("a+1")); err != nil {
			t.Fatal(err)
		}
		if err := storage.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
