package boot

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// become drops every privilege that the spec does not grant and executes the command. Order matters: the command is
// found while we may still read everything; groups before user; the filter last, unless it needs the privilege that
// no_new_privs would replace.
func become(process *Process) error {
	identity, err := identify(process)
	if err != nil {
		return err
	}
	if err := send(Report{Identity: &identity}); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	env := withHome(process.Env, identity.Home)
	if err := enterCwd(process.Cwd); err != nil {
		return err
	}
	own(identity)
	command, err := lookPath(process.Args[0], env)
	if err != nil {
		return err
	}
	if err := restrict(process); err != nil {
		return err
	}
	if err := setIdentity(identity); err != nil {
		return err
	}
	if err := clearCapabilities(identity); err != nil {
		return err
	}
	// A change of user clears it: the container must not outlive the shim that keeps its logs.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("death signal: %w", err)
	}
	if process.NoNewPrivs {
		if err := installSeccomp(process.Seccomp); err != nil {
			return err
		}
	}
	return execute(command, process.Args, env)
}

func execute(command string, args, env []string) error {
	if err := unix.CloseRange(SpecFD, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	err := syscall.Exec(command, args, env)
	return fmt.Errorf("exec %q: %w", command, err)
}

func enterCwd(name string) error {
	if name == "" {
		name = "/"
	}
	if err := os.Chdir(name); err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	// A link of /proc/self/fd leads to wherever a descriptor is; what is not below the root has no path.
	if _, err := unix.Getwd(); err != nil {
		return fmt.Errorf("working directory %s is not in the container: %w", name, err)
	}
	return nil
}

// own gives the standard streams to the user, so that /dev/stdout can be opened: pipes, sockets and the container's own
// terminal, but never a device of the host.
func own(identity Identity) {
	for fd := range 3 {
		var stat unix.Stat_t
		if unix.Fstat(fd, &stat) != nil || !isStream(&stat) {
			continue
		}
		_ = unix.Fchown(fd, int(identity.UID), int(identity.GID)) // a stream that cannot be given away still works
	}
}

func isStream(stat *unix.Stat_t) bool {
	switch stat.Mode & unix.S_IFMT {
	case unix.S_IFIFO, unix.S_IFSOCK:
		return true
	case unix.S_IFCHR:
		return isTerminal(stat.Rdev)
	default:
		return false
	}
}

// isTerminal knows the slave sides of pseudo terminals, by the kernel's list of devices.
func isTerminal(device uint64) bool { return unix.Major(device) >= 136 && unix.Major(device) <= 143 }

// restrict applies what a later change of user does not undo.
func restrict(process *Process) error {
	if err := dropBounding(process.Bounding); err != nil {
		return err
	}
	if process.NoNewPrivs {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("no_new_privs: %w", err)
		}
		return nil
	}
	return installSeccomp(process.Seccomp)
}

func dropBounding(keep uint64) error {
	for capability := uintptr(0); capability <= unix.CAP_LAST_CAP; capability++ {
		if keep&(1<<capability) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		if err == unix.EINVAL { // older kernels know fewer capabilities
			break
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", capability, err)
		}
	}
	return nil
}

// setIdentity uses raw system calls: only this thread survives execve, and the others must not be asked to follow
// through a seccomp filter.
func setIdentity(identity Identity) error {
	groups := identity.Groups
	var first unsafe.Pointer
	if len(groups) > 0 {
		first = unsafe.Pointer(&groups[0])
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(first), 0); errno != 0 {
		return fmt.Errorf("set groups: %w", errno)
	}
	runtime.KeepAlive(groups)
	gid, uid := uintptr(identity.GID), uintptr(identity.UID)
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, gid, gid, gid); errno != 0 {
		return fmt.Errorf("set group: %w", errno)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uid, uid, uid); errno != 0 {
		return fmt.Errorf("set user: %w", errno)
	}
	return nil
}

// clearCapabilities empties the inheritable set. What root then holds after execve is exactly the bounding set; other
// users hold nothing, as with every other runtime.
func clearCapabilities(identity Identity) error {
	err := changeCapabilities(func(_ uint64, set *unix.CapUserData) { set.Inheritable = 0 })
	if err != nil {
		return fmt.Errorf("capabilities of uid %d: %w", identity.UID, err)
	}
	return nil
}

// limitCapabilities leaves this thread those of its capabilities that are in keep.
func limitCapabilities(keep uint64) error {
	err := changeCapabilities(func(shift uint64, set *unix.CapUserData) {
		set.Permitted &= uint32(keep >> shift)
		set.Effective = set.Permitted
	})
	if err != nil {
		return fmt.Errorf("limit capabilities: %w", err)
	}
	return nil
}

// changeCapabilities changes this thread's sets, 32 capabilities at a time: the first is number shift.
func changeCapabilities(change func(shift uint64, set *unix.CapUserData)) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	for i := range data {
		change(uint64(32*i), &data[i])
	}
	return unix.Capset(&header, &data[0])
}

const filterBytes = 8

func installSeccomp(filter []byte) error {
	if len(filter) == 0 {
		return nil
	}
	program := make([]unix.SockFilter, len(filter)/filterBytes)
	for i := range program {
		raw := filter[i*filterBytes:]
		program[i] = unix.SockFilter{Code: binary.NativeEndian.Uint16(raw), Jt: raw[2], Jf: raw[3], K: binary.NativeEndian.Uint32(raw[4:])}
	}
	fprog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&fprog)))
	runtime.KeepAlive(program)
	if errno != 0 {
		return fmt.Errorf("install seccomp filter: %w", errno)
	}
	return nil
}

func withHome(env []string, home string) []string {
	for _, pair := range env {
		if strings.HasPrefix(pair, "HOME=") {
			return env
		}
	}
	return append(env, "HOME="+home)
}
