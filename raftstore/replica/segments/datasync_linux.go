package segments

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/raftstore/replica/eintr"
)

// reserve takes the room of a file of a size, where the file system can: it fails at once, and takes nothing, if there is none.
func reserve(f *os.File, size int64) error {
	err := eintr.Retry(func() error { return unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_KEEP_SIZE, 0, size) })
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return nil
	}
	return os.NewSyscallError("fallocate", err)
}

// totalBytes is the size of the file system of a directory.
func totalBytes(dir string) (int64, error) {
	var fs unix.Statfs_t
	if err := eintr.Retry(func() error { return unix.Statfs(dir, &fs) }); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(fs.Blocks) * int64(fs.Bsize), nil
}

// datasync brings a file's bytes to the disk, and of what the file system knows of it what is needed to read them. Of a directory it
// brings everything.
func datasync(f *os.File) error {
	if info, err := f.Stat(); err != nil || info.IsDir() {
		return errors.Join(err, f.Sync())
	}
	return os.NewSyscallError("fdatasync", eintr.Retry(func() error { return unix.Fdatasync(int(f.Fd())) }))
}
