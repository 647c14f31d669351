package boot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

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
func (c Cgroup) Join() error { return c.join("tasks", syscall.Syscall) }

// JoinWhole does so for all threads of this process. One with cgo, as built for the race detector, may have threads that are not Go's, and
// waits.
func (c Cgroup) JoinWhole() error {
	err := c.join("tasks", syscall.AllThreadsSyscall)
	if errors.Is(err, unix.ENOTSUP) {
		return c.join("cgroup.procs", syscall.Syscall)
	}
	return err
}

// enter puts this thread into the groups of v1, and all of this process into that of v2, which waits. It is for commands: the agent forks
// them, and would itself be kept waiting by a process that it forked into a frozen group.
func (c Cgroup) enter() error {
	if err := c.Join(); err != nil || c.Unified == "" {
		return err
	}
	if err := os.WriteFile(filepath.Join(c.Unified, "cgroup.procs"), []byte("0"), 0); err != nil {
		return fmt.Errorf("join cgroup: %w", err)
	}
	return nil
}

func (c Cgroup) join(file string, call func(trap, a1, a2, a3 uintptr) (r1, r2 uintptr, err syscall.Errno)) error {
	for _, dir := range c.Dirs {
		if err := writeSelf(filepath.Join(dir, file), call); err != nil {
			return fmt.Errorf("join cgroup: %w", err)
		}
	}
	return nil
}

// writeSelf writes "0", which is whoever writes it.
func writeSelf(path string, call func(trap, a1, a2, a3 uintptr) (r1, r2 uintptr, err syscall.Errno)) error {
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer file.Close()
	zero := []byte("0")
	_, _, errno := call(unix.SYS_WRITE, file.Fd(), uintptr(unsafe.Pointer(&zero[0])), 1)
	runtime.KeepAlive(zero)
	if errno != 0 {
		return &os.PathError{Op: "write", Path: path, Err: errno}
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
