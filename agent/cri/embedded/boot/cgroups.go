package boot

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Whoever writes the number of a process into a cgroup.procs waits for an RCU grace period, often 10 ms. Neither a process that is
// forked into its group (v2) nor a thread that moves itself (v1) does.

// ForkInto has the process that is forked with attr begin in the group of v2. The file is to be closed after the fork; it is nil
// without such a group.
func (c Cgroup) ForkInto(attr *syscall.SysProcAttr) (*os.File, error) {
	if c.Unified == "" {
		return nil, nil
	}
	dir, err := os.OpenFile(c.Unified, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("open cgroup: %w", err)
	}
	attr.UseCgroupFD, attr.CgroupFD = true, int(dir.Fd())
	return dir, nil
}

// Join puts this thread into the groups of v1, and with it what it forks and what it executes; the process's other threads stay.
func (c Cgroup) Join() error {
	for _, dir := range c.Dirs {
		if err := os.WriteFile(filepath.Join(dir, "tasks"), []byte("0"), 0); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	return nil
}

// newCgroupNamespace makes the process's cgroup the root of those that it sees (v2).
func newCgroupNamespace(cgroup Cgroup) error {
	if !cgroup.V2 {
		return nil
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("new cgroup namespace: %w", err)
	}
	return nil
}
