//go:build !linux

package segments

import "os"

// reserve takes no room ahead: what is written takes it.
func reserve(*os.File, int64) error { return nil }

// datasync brings the file to the disk.
func datasync(f *os.File) error { return f.Sync() }
