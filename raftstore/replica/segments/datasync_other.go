//go:build !linux

package segments

import "os"

// datasync brings the file to the disk.
func datasync(f *os.File) error { return f.Sync() }
