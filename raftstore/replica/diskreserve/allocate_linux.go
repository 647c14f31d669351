package diskreserve

import (
	"os"

	"golang.org/x/sys/unix"
)

// allocate takes so many bytes of the disk for a file.
func allocate(file *os.File, bytes int64) error {
	return uninterrupted(func() error { return unix.Fallocate(int(file.Fd()), 0, 0, bytes) })
}
