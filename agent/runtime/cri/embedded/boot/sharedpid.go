package boot

import (
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// A container that shares a PID namespace is booted outside of it: its neighbours, if they may trace, would otherwise get
// at a process that still has the host's files and every capability. Only the main process enters, by fork, when
// all of that is given away.

// openNamespace returns a handle of the process whose PID namespace is shared; -1 if it is 0. The thread's file system context
// becomes its own, so that it may visit another mount namespace.
func openNamespace(pid int) (int, error) {
	if pid == 0 {
		return -1, nil
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return -1, fmt.Errorf("unshare file system context: %w", err)
	}
	target, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, fmt.Errorf("process %d, whose PID namespace is shared: %w", pid, err)
	}
	return target, nil
}

var errNoProcfs = errors.New("its /proc is something else")

// openProcOf opens the procfs of target's PID namespace, if target is not -1.
func openProcOf(spec *Spec, target int, trees map[string]tree) error {
	if target < 0 {
		return nil
	}
	for _, mount := range spec.Mounts {
		if mount.Type != "proc" {
			continue
		}
		proc, err := openSharedProc(target)
		if err != nil {
			return fmt.Errorf("procfs of the shared PID namespace: %w", err)
		}
		trees[mount.Target] = proc
	}
	return nil
}

// openSharedProc takes the procfs of a PID namespace from target's mounts: a new one can be mounted only from inside.
func openSharedProc(target int) (tree, error) {
	own, err := unix.Open("/proc/thread-self/ns/mnt", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return tree{}, err
	}
	defer unix.Close(own)
	if err := unix.Setns(target, unix.CLONE_NEWNS); err != nil {
		return tree{}, err
	}
	proc, err := cloneProc()
	return proc, errors.Join(err, unix.Setns(own, unix.CLONE_NEWNS))
}

// cloneProc leaves behind what is mounted below /proc: every container has masks of its own.
func cloneProc() (tree, error) {
	fd, err := unix.Open("/proc", unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return tree{}, err
	}
	defer unix.Close(fd)
	var stat unix.Statfs_t
	if err := unix.Fstatfs(fd, &stat); err != nil {
		return tree{}, err
	}
	if stat.Type != unix.PROC_SUPER_MAGIC {
		return tree{}, errNoProcfs
	}
	clone, err := unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	if err != nil {
		return tree{}, err
	}
	attr := unix.MountAttr{
		Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_NOEXEC, Attr_clr: unix.MOUNT_ATTR_RDONLY,
		Propagation: unix.MS_PRIVATE,
	}
	return tree{FD: clone, IsDir: true}, unix.MountSetattr(clone, "", unix.AT_EMPTY_PATH, &attr)
}

// becomeIn forks the main process into target's PID namespace, as the shim's own child, and ends this one when the shim has
// taken note. The death of the shim ends process 1 of that namespace, and so this one too.
func becomeIn(target int, process *Process) error {
	if err := newKeyring(); err != nil {
		return err
	}
	if process.Tty {
		if err := handOverTerminal(); err != nil {
			return err
		}
	}
	identity, err := identify(process)
	if err != nil {
		return err
	}
	process.Identity = &identity
	if err := send(Report{Identity: &identity}); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := unix.CloseRange(SpecFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	if err := unix.Setns(target, unix.CLONE_NEWPID); err != nil {
		return fmt.Errorf("enter PID namespace: %w", err)
	}
	main := &command{flags: unix.CLONE_PARENT}
	if err := main.spawn(process); err != nil {
		return err
	}
	if err := send(Report{Forked: main.pid}); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, _ = unix.Read(ReportFD, make([]byte, 1)) // whether noted or gone, there is nothing left to do
	os.Exit(0)
	return nil
}
