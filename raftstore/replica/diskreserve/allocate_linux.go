package diskreserve

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/raftstore/replica/eintr"
)

// allocate takes so many bytes of the disk for a file.
func allocate(file *os.File, bytes int64) error {
	return eintr.Retry(func() error { return unix.Fallocate(int(file.Fd()), 0, 0, bytes) })
}
