package boot

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// openTerminal takes a new terminal from the container's own devpts, so that ttyname works inside, and sends its
// master side to the parent.
func openTerminal() error {
	master, slave, err := terminalPair()
	if err != nil {
		return err
	}
	if err := send(Report{Terminal: true}, master); err != nil {
		return fmt.Errorf("hand over terminal: %w", err)
	}
	if err := unix.Close(master); err != nil {
		return fmt.Errorf("hand over terminal: %w", err)
	}
	if err := unix.IoctlSetInt(slave, unix.TIOCSCTTY, 0); err != nil {
		return fmt.Errorf("controlling terminal: %w", err)
	}
	for fd := range 3 {
		if err := unix.Dup3(slave, fd, 0); err != nil {
			return fmt.Errorf("terminal as standard stream: %w", err)
		}
	}
	return unix.Close(slave)
}

var errNotTerminal = errors.New("/dev/ptmx is not the terminals' device")

// terminalPair trusts no name in the container but that of ptmx, which it checks: the slave side comes from the master.
func terminalPair() (master, slave int, err error) {
	master, err = unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("open terminal: %w", err)
	}
	var stat unix.Stat_t
	if err := unix.Fstat(master, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFCHR || stat.Rdev != unix.Mkdev(5, 2) {
		return 0, 0, errNotTerminal
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return 0, 0, fmt.Errorf("unlock terminal: %w", err)
	}
	peer, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(master), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return 0, 0, fmt.Errorf("open terminal: %w", errno)
	}
	return master, int(peer), nil
}
