//go:build !linux

package segments

import "os"

// reserve takes no room ahead: what is written takes it.
func reserve(*os.File, int64) error { return nil }

// totalBytes is unknown.
func totalBytes(string) (int64, error) { return 0, nil }

// datasync brings the file to the disk.
func datasync(f *os.File) error { return f.Sync() }
