package boot

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// keyringPossessor lets only processes that hold a keyring see it, search it and change it: user 0 is the same user in
// every container.
const keyringPossessor = 0x3f000000

// newKeyring gives the calling thread a session keyring of its own, in place of the one that the host's process had. It has
// no name, so that no other container can join it. A kernel without keyrings, or one that refuses them, has nothing to
// separate.
func newKeyring() error {
	keyring, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("new keyring: %w", err)
	}
	if err := unix.KeyctlSetperm(keyring, keyringPossessor); err != nil {
		return fmt.Errorf("new keyring: %w", err)
	}
	return nil
}
