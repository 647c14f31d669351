package boot

import (
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// Init becomes the container's main process. It returns only by execve or by ending the process.
func Init() {
	// Namespaces, capabilities, no_new_privs and seccomp belong to the thread; execve keeps those of the caller.
	runtime.LockOSThread()
	if len(os.Args) > 1 && os.Args[1] == insideStage {
		fail(runInside())
	}
	var spec Spec
	if err := readSpec(&spec); err != nil {
		fail(err)
	}
	fail(run(&spec))
}

// run becomes the process of the spec; it returns only what kept it from that.
func run(spec *Spec) error {
	// Set again after the change of user, which clears it; here it covers a shim that dies while we are booting.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("death signal: %w", err)
	}
	if err := announce(); err != nil {
		return err
	}
	setOOMScore(spec.OOMScoreAdj)
	if err := spec.Cgroup.Join(); err != nil {
		return err
	}
	if spec.Users != nil {
		return runInUsers(spec)
	}
	if err := confine(&spec.Process); err != nil {
		return err
	}
	if err := newCgroupNamespace(spec.Cgroup); err != nil {
		return err
	}
	target, err := openNamespace(spec.SharedPID)
	if err != nil {
		return err
	}
	if err := enterRoot(spec, target); err != nil {
		return err
	}
	return becomeMain(target, &spec.Process)
}

// becomeMain becomes the command, in the PID namespace of target if that is not -1.
func becomeMain(target int, process *Process) error {
	if target >= 0 {
		return becomeIn(target, process)
	}
	if err := newSession(process); err != nil {
		return err
	}
	return become(process)
}

func announce() error {
	pid, err := ownPID()
	if err != nil {
		return err
	}
	return send(Report{PID: pid})
}

// ownPID is the host's: the procfs mounted here is still its own, so /proc/self names us as the host sees us.
func ownPID() (int, error) {
	link, err := os.Readlink("/proc/self")
	if err != nil {
		return 0, fmt.Errorf("own pid: %w", err)
	}
	pid, err := strconv.Atoi(link)
	if err != nil {
		return 0, fmt.Errorf("own pid: %w", err)
	}
	return pid, nil
}

// setOOMScore raises freely; lowering needs CAP_SYS_RESOURCE, and a machine without it keeps the inherited value.
func setOOMScore(value int) {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(value)), 0)
}

// enterRoot builds the container's file tree and makes it the only one this process can see. target is the owner of the
// PID namespace that procfs is to show, -1 for our own.
func enterRoot(spec *Spec, target int) error {
	trees, err := openSources(spec)
	if err != nil {
		return err
	}
	if err := openProcOf(spec, target, trees); err != nil {
		return err
	}
	if err := detachMounts(); err != nil {
		return err
	}
	if err := openImages(spec, trees); err != nil {
		return err
	}
	root, err := mountRoot(spec)
	if err != nil {
		return err
	}
	return fillRoot(root, spec, trees)
}

// detachMounts keeps what is mounted from here on from the host.
func detachMounts() error {
	// Slave, not private: HostToContainer mounts must still receive what the host mounts later.
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("detach from the host's mounts: %w", err)
	}
	return nil
}

// fillRoot mounts everything below the root, and makes it the process's own.
func fillRoot(root rootDir, spec *Spec, trees map[string]tree) error {
	if err := mountAll(root, spec, trees); err != nil {
		return err
	}
	if err := hideHost(root, spec); err != nil {
		return err
	}
	if err := pivot(root); err != nil {
		return err
	}
	return finishRoot(spec)
}

func pivot(root rootDir) error {
	if err := unix.Fchdir(int(root)); err != nil {
		return fmt.Errorf("enter root: %w", err)
	}
	// The old root is stacked on the new one at the same place and then detached: no directory is needed for it.
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach old root: %w", err)
	}
	return os.Chdir("/")
}

// newSession gives the process its own session and keyring and, if asked, a controlling terminal whose other side
// goes to the parent.
func newSession(process *Process) error {
	if _, err := unix.Setsid(); err != nil {
		return fmt.Errorf("new session: %w", err)
	}
	if err := newKeyring(); err != nil {
		return err
	}
	if !process.Tty {
		return nil
	}
	return openTerminal()
}
