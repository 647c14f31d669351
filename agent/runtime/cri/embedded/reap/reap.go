package reap

import (
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// Wait waits until a command that was started has ended, and returns what its Wait does. The command must have no streams that
// os/exec copies, which would be waited for as well.
func Wait(command *exec.Cmd) error {
	awaitEnd(command.Process.Pid)
	return command.Wait()
}

// awaitEnd returns when a child, which nobody has waited for yet, has ended, or if that cannot be seen.
func awaitEnd(child int) {
	fd, err := unix.PidfdOpen(child, unix.PIDFD_NONBLOCK)
	if err != nil {
		return
	}
	process := os.NewFile(uintptr(fd), "process") // nonblocking, so the runtime's poller has it
	defer process.Close()
	conn, err := process.SyscallConn()
	if err != nil {
		return
	}
	_ = conn.Read(hasEnded) // Wait waits then
}

// hasEnded is whether the process of a descriptor has ended: it can be read from then.
func hasEnded(fd uintptr) bool {
	at := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(at, 0)
	return err == nil && n > 0
}
