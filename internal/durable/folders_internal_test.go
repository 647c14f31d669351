package durable

import (
	"path/filepath"
	"slices"
	"testing"
)

// TestFoldersAreSyncedWhereTheyAreMade: each folder that was missing, in the one above it, and none if all were there.
func TestFoldersAreSyncedWhereTheyAreMade(t *testing.T) {
	dir := t.TempDir()
	var synced []string
	sync := func(path string) error {
		synced = append(synced, path)
		return SyncFolder(path)
	}
	for _, want := range [][]string{{filepath.Join(dir, "a"), dir}, nil} {
		synced = nil
		if err := mkdirAll(filepath.Join(dir, "a", "b"), 0o700, sync); err != nil || !slices.Equal(synced, want) {
			t.Errorf("synced: %v, want %v; %v", synced, want, err)
		}
	}
	if err := MkdirAll(filepath.Join(dir, "a", "b", "c"), 0o700); err != nil {
		t.Error(err)
	}
}
