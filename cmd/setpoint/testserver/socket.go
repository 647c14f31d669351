package testserver

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/internal/process"
)

const (
	// dialTimeout is how long a server that is there may take to accept.
	dialTimeout = time.Second
	// ownMask takes all rights from others than the user.
	ownMask = 0o177
	// socketPathMax is what Linux takes, in bytes.
	socketPathMax = 107
)

// Listen opens the socket, which its user alone may connect to. What a server that was killed left there it takes away. A file beside
// it, of the same name with .lock, is locked until the listener is closed, and stays: two servers never take it from one another.
// Processes change the mask of new files together: call it while nothing else runs.
func Listen(path string) (net.Listener, error) {
	if len(path) > socketPathMax {
		return nil, fmt.Errorf("the path of a socket has at most %d bytes, %s has %d: choose a shorter one", socketPathMax, path, len(path))
	}
	release, err := process.Lock(filepath.Dir(path), filepath.Base(path))
	switch {
	case errors.Is(err, process.ErrInUse):
		return nil, answersAlready(path)
	case err != nil:
		return nil, err
	}
	listener, err := bind(path)
	if err != nil {
		release()
		return nil, err
	}
	made, err := os.Lstat(path)
	if err != nil {
		release()
		return nil, errors.Join(err, listener.Close())
	}
	return &owned{UnixListener: listener, path: path, made: made, release: release}, nil
}

func answersAlready(path string) error {
	return fmt.Errorf("a test server answers at %s already: use it, or choose another path", path)
}

// bind makes the socket. The lock is held.
func bind(path string) (*net.UnixListener, error) {
	if err := clear(path); err != nil {
		return nil, err
	}
	former := unix.Umask(ownMask)
	defer unix.Umask(former)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: path})
	if err != nil {
		return nil, err
	}
	listener.SetUnlinkOnClose(false)
	return listener, nil
}

// owned is a listener that takes its own socket away when it is closed, and none that is there in its place.
type owned struct {
	*net.UnixListener
	path    string
	made    fs.FileInfo
	release func()
	once    sync.Once
	err     error
}

// Close implements net.Listener.
func (o *owned) Close() error {
	o.once.Do(func() {
		defer o.release()
		if now, err := os.Lstat(o.path); err == nil && os.SameFile(o.made, now) {
			o.err = os.Remove(o.path)
		}
		o.err = errors.Join(o.err, o.UnixListener.Close())
	})
	return o.err
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
		return errors.Join(answersAlready(path), conn.Close())
	}
	return os.Remove(path)
}
