package testserver

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// dialTimeout is how long a server that is there may take to accept.
	dialTimeout = time.Second
	// ownMask takes all rights from others than the user.
	ownMask = 0o177
	// socketPathMax is what Linux takes, in bytes.
	socketPathMax = 107
)

// Listen opens the socket, which its user alone may connect to. What a server that was killed left there it takes away. Processes
// change the mask of new files together: call it while nothing else runs.
func Listen(path string) (net.Listener, error) {
	if len(path) > socketPathMax {
		return nil, fmt.Errorf("the path of a socket has at most %d bytes, %s has %d: choose a shorter one", socketPathMax, path, len(path))
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := clear(path); err != nil {
		return nil, err
	}
	former := unix.Umask(ownMask)
	defer unix.Umask(former)
	return net.Listen("unix", path)
}

// clear takes away the socket of a process that has ended.
func clear(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s is there and is no socket: choose another path", path)
	}
	conn, err := net.DialTimeout("unix", path, dialTimeout)
	if err == nil {
		return errors.Join(fmt.Errorf("a test server answers at %s already: use it, or choose another path", path), conn.Close())
	}
	return os.Remove(path)
}
