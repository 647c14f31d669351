package boot

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A process of several threads cannot enter a user namespace, and each of ours has several. So a child enters it before it has
// more than one, between fork and execve, where no Go code may run that allocates, grows its stack or meets the scheduler. These
// are what package syscall calls around its own fork; the runtime keeps their names for such users.

//go:linkname beforeFork syscall.runtime_BeforeFork
func beforeFork()

//go:linkname afterFork syscall.runtime_AfterFork
func afterFork()

//go:linkname afterForkInChild syscall.runtime_AfterForkInChild
func afterForkInChild()

// entry is one start of our executable in a user namespace, as its user 0.
type entry struct {
	users      int       // the user namespace
	executable int       // ours
	failure    int       // gets the number of the error; closed by execve
	first      uintptr   // clone's flags for the child that enters
	second     uintptr   // if not 0: it forks again with these, inside, and ends
	argv, envv *[4]*byte // they end with nil
	empty      *byte
}

// enterUsers starts our executable as role in the user namespace of the process holder, as user 0 there. It has the descriptors
// that are not close-on-exec, handed among them. With namespaces of its own (clone's flags) it is a child of this process's
// parent, else of this one.
func enterUsers(holder int, role string, handed int, namespaces uintptr) (pid int, err error) {
	users, err := unix.Open(fmt.Sprintf("/proc/%d/ns/user", holder), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("user namespace of process %d: %w", holder, err)
	}
	defer unix.Close(users)
	executable, err := unix.Open("/proc/self/exe", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("own executable: %w", err)
	}
	defer unix.Close(executable)
	var failure [2]int
	if err := unix.Pipe2(failure[:], unix.O_CLOEXEC); err != nil {
		return 0, err
	}
	defer unix.Close(failure[0])
	e := entry{users: users, executable: executable, failure: failure[1], empty: new(byte)}
	if namespaces != 0 {
		e.first, e.second = unix.CLONE_PARENT, namespaces|unix.CLONE_PARENT
	}
	if e.argv, err = pointers(role, insideStage, strconv.Itoa(handed)); err == nil {
		e.envv, err = pointers("GOMAXPROCS=2")
	}
	if err != nil {
		unix.Close(failure[1])
		return 0, err
	}
	pid, errno := e.fork()
	unix.Close(failure[1])
	if errno != 0 {
		return 0, fmt.Errorf("fork: %w", errno)
	}
	return pid, awaitEntry(failure[0])
}

// pointers is a list as execve takes it.
func pointers(texts ...string) (*[4]*byte, error) {
	list := &[4]*byte{}
	for i, text := range texts {
		var err error
		if list[i], err = unix.BytePtrFromString(text); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// awaitEntry returns when the executable runs, or why it does not.
func awaitEntry(failure int) error {
	var number [4]byte
	for {
		n, err := unix.Read(failure, number[:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return os.NewSyscallError("read", err)
		case n == 0:
			return nil
		}
		return fmt.Errorf("enter user namespace: %w", syscall.Errno(*(*uint32)(unsafe.Pointer(&number))))
	}
}

// fork returns in the parent only.
//
//go:noinline
//go:norace
func (e *entry) fork() (pid int, errno syscall.Errno) {
	var child uintptr
	beforeFork()
	child, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, e.first|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 || child != 0 {
		afterFork()
		return int(child), errno
	}
	afterForkInChild()
	if _, _, errno = syscall.RawSyscall(unix.SYS_SETNS, uintptr(e.users), unix.CLONE_NEWUSER, 0); errno != 0 {
		goto failed
	}
	if _, _, errno = syscall.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); errno != 0 {
		goto failed
	}
	if _, _, errno = syscall.RawSyscall(unix.SYS_SETRESGID, 0, 0, 0); errno != 0 {
		goto failed
	}
	if _, _, errno = syscall.RawSyscall(unix.SYS_SETRESUID, 0, 0, 0); errno != 0 {
		goto failed
	}
	if e.second != 0 {
		child, _, errno = syscall.RawSyscall6(syscall.SYS_CLONE, e.second|uintptr(syscall.SIGCHLD), 0, 0, 0, 0, 0)
		if errno != 0 {
			goto failed
		}
		if child != 0 {
			for {
				syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
			}
		}
	}
	_, _, errno = syscall.RawSyscall6(unix.SYS_EXECVEAT, uintptr(e.executable), uintptr(unsafe.Pointer(e.empty)),
		uintptr(unsafe.Pointer(e.argv)), uintptr(unsafe.Pointer(e.envv)), unix.AT_EMPTY_PATH, 0)
failed:
	number := uint32(errno)
	syscall.RawSyscall(unix.SYS_WRITE, uintptr(e.failure), uintptr(unsafe.Pointer(&number)), unsafe.Sizeof(number))
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, codeStartFailed, 0, 0)
	}
}
