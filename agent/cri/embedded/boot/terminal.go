package boot

import (
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

func terminalPair() (master, slave int, err error) {
	master, err = unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("open terminal: %w", err)
	}
	if err := unix.IoctlSetPointerInt(master, unix.TIOCSPTLCK, 0); err != nil {
		return 0, 0, fmt.Errorf("unlock terminal: %w", err)
	}
	number, err := unix.IoctlGetInt(master, unix.TIOCGPTN)
	if err != nil {
		return 0, 0, fmt.Errorf("terminal number: %w", err)
	}
	slave, err = unix.Open(fmt.Sprintf("/dev/pts/%d", number), unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, 0, fmt.Errorf("open terminal: %w", err)
	}
	return master, slave, nil
}
