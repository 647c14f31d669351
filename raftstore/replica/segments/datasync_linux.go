package segments

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// datasync brings a file's bytes to the disk, and of what the file system knows of it what is needed to read them. Of a directory it
// brings everything.
func datasync(f *os.File) error {
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return errors.Join(err, f.Sync())
	}
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}
