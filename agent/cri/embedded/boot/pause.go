package boot

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// PauseSpec describes process 1 of a pod's shared PID namespace.
type PauseSpec struct {
	Cgroup Cgroup
	// MaskedPaths are hidden in its procfs.
	MaskedPaths []string
}

// pauseStage is the argument of a pause process that has given everything away.
const pauseStage = "wait"

// Pause is process 1 of a pod's shared PID namespace: it owns the namespace and its procfs, and collects orphans. The pod's
// containers see it, and one with the capability to trace may do with it as it likes. So it has no capability, no way to
// regain one, and an empty root with nothing but that procfs, read-only and masked as a container's.
func Pause() {
	runtime.LockOSThread()
	if len(os.Args) > 1 && os.Args[1] == pauseStage {
		pause()
		return
	}
	var spec PauseSpec
	if err := readSpec(&spec); err != nil {
		fail(err)
	}
	if err := giveAway(&spec); err != nil {
		fail(err)
	}
}

// giveAway ends in execve: what the capabilities of this thread are then is true of the whole process.
func giveAway(spec *PauseSpec) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("death signal: %w", err)
	}
	if err := joinCgroups(spec.Cgroup); err != nil {
		return err
	}
	if err := enterEmptyRoot(spec); err != nil {
		return err
	}
	if err := newKeyring(); err != nil {
		return err
	}
	if err := clearCapabilities(Identity{}); err != nil {
		return err
	}
	if err := restrict(&Process{NoNewPrivs: true}); err != nil {
		return err
	}
	if err := unix.CloseRange(ReportFD+1, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	err := syscall.Exec("/proc/self/exe", []string{os.Args[0], pauseStage}, os.Environ())
	return fmt.Errorf("execute again: %w", err)
}

// enterEmptyRoot mounts over the working directory, in a mount namespace of its own.
func enterEmptyRoot(spec *PauseSpec) error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("detach from the host's mounts: %w", err)
	}
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("empty root: %w", err)
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755,size=4k,nr_inodes=8"); err != nil {
		return fmt.Errorf("empty root: %w", err)
	}
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("empty root: %w", err)
	}
	root := rootDir(fd)
	if err := mountMaskedProc(root, spec.MaskedPaths); err != nil {
		return err
	}
	if err := pivot(root); err != nil {
		return err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("make root read-only: %w", err)
	}
	return nil
}

func mountMaskedProc(root rootDir, masked []string) error {
	proc := Mount{Type: "proc", Source: "proc", Target: "/proc", Flags: unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC}
	if err := mountOne(root, proc, nil); err != nil {
		return fmt.Errorf("mount proc: %w", err)
	}
	return hideHost(root, &Spec{MaskedPaths: masked})
}

func pause() {
	orphans := make(chan os.Signal, 1)
	signal.Notify(orphans, syscall.SIGCHLD)
	// Only a tracer may look at it now.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		fail(fmt.Errorf("not dumpable: %w", err))
	}
	if err := send(Report{Done: true}); err != nil {
		fail(err)
	}
	unix.Close(ReportFD)
	for range orphans {
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if (err != nil && !errors.Is(err, unix.EINTR)) || pid == 0 {
				break
			}
		}
	}
}
