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

// PauseSpec describes process 1 of a pod's PID namespace.
type PauseSpec struct {
	// MaskedPaths are hidden in its procfs.
	MaskedPaths []string
	// Settings, if not nil, are those of the namespaces that it holds.
	Settings *PodSettings `json:",omitempty"`
}

// PodSettings are what a pod's namespaces are to have.
type PodSettings struct {
	// Hostname is set in the pod's UTS namespace; empty leaves the host's.
	Hostname string
	// Sysctls are kernel parameters of the pod's own namespaces, by their files below /proc/sys.
	Sysctls map[string]string
}

// Apply sets them in the namespaces that this thread is in. Some are numbers of users, of the user namespace that it is in.
func (s *PodSettings) Apply() error {
	if s.Hostname != "" {
		if err := unix.Sethostname([]byte(s.Hostname)); err != nil {
			return fmt.Errorf("hostname: %w", err)
		}
	}
	for name, value := range s.Sysctls {
		if err := os.WriteFile("/proc/sys/"+name, []byte(value), 0); err != nil {
			return fmt.Errorf("sysctl %s: %w", name, err)
		}
	}
	return nil
}

// pauseStage is the argument of a pause process that has given everything away.
const pauseStage = "wait"

// Pause is process 1 of a pod's PID namespace: it owns the namespace and its procfs, and collects orphans; of a pod with a user
// namespace it holds that one too, and the network, IPC and UTS namespaces that belong to it. Containers that share processes see
// it, and one with the capability to trace may do with it as it likes. So it has no capability, no way to
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
	if spec.Settings != nil {
		if err := spec.Settings.Apply(); err != nil {
			return err
		}
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

// enterEmptyRoot makes a root of nothing but procfs, in a mount namespace of its own.
func enterEmptyRoot(spec *PauseSpec) error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("detach from the host's mounts: %w", err)
	}
	fd, err := newMount("tmpfs", 0, map[string]string{"mode": "755", "size": "4k", "nr_inodes": "8"})
	if err != nil {
		return fmt.Errorf("empty root: %w", err)
	}
	if err := attachRoot(fd); err != nil {
		return err
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
	if err := mountOne(root, proc, "", nil); err != nil {
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
