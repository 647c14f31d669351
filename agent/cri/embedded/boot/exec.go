package boot

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// everyNamespace is what a container's main process may have of its own; entering one that is shared does nothing.
const everyNamespace = unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWNET | unix.CLONE_NEWPID |
	unix.CLONE_NEWCGROUP | unix.CLONE_NEWNS

// Exec runs a command inside a running container, reports its exit code and ends the process. When the other end of
// the report socket closes, the command is killed: nobody would read its result any more.
func Exec() {
	runtime.LockOSThread()
	var spec ExecSpec
	if err := readSpec(&spec); err != nil {
		fail(err)
	}
	pid, err := startInside(&spec)
	if err != nil {
		fail(err)
	}
	go killOnHangup(pid)
	code := wait(pid)
	_ = send(Report{Done: true, Exited: code}) // the reader may have given up
	os.Exit(0)
}

func startInside(spec *ExecSpec) (int, error) {
	// A container must not be able to open our executable through /proc while we are already inside.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("not dumpable: %w", err)
	}
	for _, dir := range spec.Cgroup.Dirs {
		if err := os.WriteFile(dir+"/cgroup.procs", []byte("0"), 0); err != nil {
			return 0, fmt.Errorf("join cgroup: %w", err)
		}
	}
	if err := enter(spec.PID); err != nil {
		return 0, err
	}
	if spec.Process.Tty {
		if err := handOverTerminal(); err != nil {
			return 0, err
		}
	}
	return spawn(&spec.Process)
}

// enter joins all namespaces at once. Unsharing the file system context first is what lets a thread of a
// multi-threaded process change its mount namespace.
func enter(pid int) error {
	target, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("container process %d: %w", pid, err)
	}
	defer unix.Close(target)
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare file system context: %w", err)
	}
	if err := unix.Setns(target, everyNamespace); err != nil {
		return fmt.Errorf("enter container: %w", err)
	}
	return nil
}

func handOverTerminal() error {
	master, slave, err := terminalPair()
	if err != nil {
		return err
	}
	defer unix.Close(slave)
	defer unix.Close(master)
	if err := send(Report{Terminal: true}, master); err != nil {
		return fmt.Errorf("hand over terminal: %w", err)
	}
	for fd := range 3 {
		if err := unix.Dup3(slave, fd, 0); err != nil {
			return fmt.Errorf("terminal as standard stream: %w", err)
		}
	}
	return nil
}

// spawn forks the command from this thread, which it resembles in everything but the user.
func spawn(process *Process) (int, error) {
	identity, err := resolveUser(process.User, "/")
	if err != nil {
		return 0, err
	}
	env := withHome(process.Env, identity.home)
	if err := enterCwd(process.Cwd); err != nil {
		return 0, err
	}
	own(identity)
	command, err := lookPath(process.Args[0], env)
	if err != nil {
		return 0, err
	}
	if err := restrictForFork(process, identity); err != nil {
		return 0, err
	}
	pid, err := syscall.ForkExec(command, process.Args, &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{
			Setsid:     true,
			Setctty:    process.Tty,
			Credential: &syscall.Credential{Uid: identity.uid, Gid: identity.gid, Groups: identity.groups},
		},
	})
	if err != nil {
		return 0, fmt.Errorf("exec: %q: %w", command, err)
	}
	return pid, releaseStreams()
}

func restrictForFork(process *Process, identity identity) error {
	if err := clearCapabilities(identity); err != nil {
		return err
	}
	if err := restrict(process); err != nil {
		return err
	}
	if process.NoNewPrivs {
		return installSeccomp(process.Seccomp)
	}
	return nil
}

// releaseStreams leaves the command as the only holder of its streams, so that readers see their end.
func releaseStreams() error {
	null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("release streams: %w", err)
	}
	defer unix.Close(null)
	for fd := range 3 {
		if err := unix.Dup3(null, fd, 0); err != nil {
			return fmt.Errorf("release streams: %w", err)
		}
	}
	return nil
}

func killOnHangup(pid int) {
	poll := []unix.PollFd{{Fd: ReportFD, Events: unix.POLLRDHUP}}
	for {
		_, err := unix.Poll(poll, -1)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
	// The whole session, or the command alone if it has already left its group.
	if unix.Kill(-pid, unix.SIGKILL) != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

func wait(pid int) int {
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(pid, &status, 0, nil)
		if err == nil {
			return ExitCode(status)
		}
		if !errors.Is(err, unix.EINTR) {
			return codeStartFailed
		}
	}
}

// ExitCode is the shell's view of a wait status: 128 + signal for a killed process.
func ExitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return codeStartFailed + int(status.Signal())
	}
	return status.ExitStatus()
}
