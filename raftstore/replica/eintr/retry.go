package eintr

import (
	"errors"

	"golang.org/x/sys/unix"
)

// Retry makes a system call again for as long as signals break it off. Other errors are the caller's.
func Retry(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
