package boot

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// everyNamespace is what a container's main process may have of its own, beside a cgroup namespace (v2); entering one that is shared
// does nothing.
const everyNamespace = unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWNS

// Exec runs a command inside a running container, reports its exit code and ends the process. When the other end of
// the report socket closes, the command is killed: nobody would read its result any more.
func Exec() {
	runtime.LockOSThread()
	var spec ExecSpec
	if err := readExecSpec(&spec); err != nil {
		fail(err)
	}
	command := &command{}
	go command.killOnHangup()
	if spec.Users != nil {
		fail(execInUsers(&spec))
	}
	if err := startInside(&spec, command); err != nil {
		fail(err)
	}
	code := wait(command.pid)
	_ = send(Report{Done: true, Exited: code}) // the reader may have given up
	os.Exit(0)
}

func readExecSpec(spec *ExecSpec) error {
	if len(os.Args) > 1 && os.Args[1] == insideStage {
		return readHanded(spec)
	}
	return readSpec(spec)
}

// execInUsers does what only the host's root may, starts Exec again among the container's users, and ends with it.
func execInUsers(spec *ExecSpec) error {
	if err := spec.Cgroup.enter(); err != nil {
		return err
	}
	giveStreams(spec.Users)
	inside := *spec
	inside.Users, inside.Cgroup = nil, Cgroup{V2: spec.Cgroup.V2}
	handed, err := handOver(&inside)
	if err != nil {
		return err
	}
	pid, err := enterUsers(spec.Users.Holder, os.Args[0], handed, 0)
	if err != nil {
		return err
	}
	releaseStreams()
	os.Exit(wait(pid))
	return nil
}

// command is the process that Exec starts. mu is held while it is forked, so that a hang-up comes before or after. flags are
// clone's, beside the usual.
type command struct {
	flags uintptr
	mu    sync.Mutex
	pid   int
}

// killOnHangup waits for the other end to close, and ends the command; before there is one, this process.
func (c *command) killOnHangup() {
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
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pid == 0 {
		os.Exit(codeStartFailed)
	}
	// The whole session, or the command alone if it has already left its group.
	if unix.Kill(-c.pid, unix.SIGKILL) != nil {
		_ = unix.Kill(c.pid, unix.SIGKILL)
	}
}

func startInside(spec *ExecSpec, command *command) error {
	// A container must not be able to open our executable through /proc while we are already inside.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("not dumpable: %w", err)
	}
	// The command gets its three streams: not our socket, nor what this process inherited.
	if err := unix.CloseRange(SpecFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	if err := spec.Cgroup.enter(); err != nil {
		return err
	}
	if err := confine(&spec.Process); err != nil {
		return err
	}
	if err := enter(spec); err != nil {
		return err
	}
	if err := newKeyring(); err != nil {
		return err
	}
	if spec.Process.Tty {
		if err := handOverTerminal(); err != nil {
			return err
		}
	}
	if err := command.spawn(&spec.Process); err != nil {
		return err
	}
	releaseStreams()
	return nil
}

// enter joins all namespaces at once. Unsharing the file system context first is what lets a thread of a
// multi-threaded process change its mount namespace.
func enter(spec *ExecSpec) error {
	target, err := unix.PidfdOpen(spec.PID, 0)
	if err != nil {
		return fmt.Errorf("container process %d: %w", spec.PID, err)
	}
	defer unix.Close(target)
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare file system context: %w", err)
	}
	namespaces := everyNamespace
	if spec.Cgroup.V2 {
		namespaces |= unix.CLONE_NEWCGROUP
	}
	if err := unix.Setns(target, namespaces); err != nil {
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
func (c *command) spawn(process *Process) error {
	identity, err := identify(process)
	if err != nil {
		return err
	}
	env := withHome(process.Env, identity.Home)
	if err := enterCwd(process.Cwd); err != nil {
		return err
	}
	own(identity)
	path, err := lookPath(process.Args[0], env)
	if err != nil {
		return err
	}
	if err := restrictForFork(process, identity); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pid, err = syscall.ForkExec(path, process.Args, &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{0, 1, 2},
		Sys: &syscall.SysProcAttr{
			Cloneflags: c.flags,
			Setsid:     true,
			Setctty:    process.Tty,
			Credential: &syscall.Credential{Uid: identity.UID, Gid: identity.GID, Groups: identity.Groups},
		},
	})
	if err != nil {
		c.pid = 0
		return fmt.Errorf("exec: %q: %w", path, err)
	}
	return nil
}

func restrictForFork(process *Process, identity Identity) error {
	if err := clearCapabilities(identity); err != nil {
		return err
	}
	if err := restrict(process); err != nil {
		return err
	}
	// Between fork and execve the child is already among the container's processes, which may be allowed to trace it.
	if err := limitCapabilities(process.Bounding | 1<<unix.CAP_SETUID | 1<<unix.CAP_SETGID); err != nil {
		return err
	}
	if process.NoNewPrivs {
		return installSeccomp(process.Seccomp)
	}
	return nil
}

// releaseStreams leaves the command as the only holder of its streams, so that readers see their end.
func releaseStreams() {
	for fd := range 3 {
		_ = unix.Close(fd) // it was open, or it is closed now
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
