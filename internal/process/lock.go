package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// ErrInUse says that two processes would write the same files.
var ErrInUse = errors.New("the data directory is in use by another setpoint: stop it, or give this one a --data-dir of its own")

// The roles that keep a data directory: of the state of a server, and of the pods of a machine.
const (
	ServerRole = "server"
	AgentRole  = "agent"
)

// LockFile is the file that the process with a role keeps open and locked.
func LockFile(dir, role string) string { return filepath.Join(dir, role+".lock") }

// Lock keeps the data directory dir for this process until release is called
// or the process ends. role tells apart what may share a directory.
func Lock(dir, role string) (release func(), err error) {
	err = os.MkdirAll(dir, 0o700)
	if errors.Is(err, fs.ErrPermission) {
		return nil, fmt.Errorf("%w: run this as root, or choose a folder of yours with --data-dir", err)
	}
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(LockFile(dir, role), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flock(file); err != nil {
		_ = file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("%s: %w", dir, ErrInUse)
		}
		return nil, fmt.Errorf("lock %s: %w", dir, err)
	}
	return func() { _ = file.Close() }, nil
}

// lockPatience is how long the lock of a process that was killed may outlast it: a child that it was just starting has the file open
// too, until it runs its own program.
const lockPatience = time.Second

const lockPollInterval = 10 * time.Millisecond

func flock(file *os.File) error {
	for deadline := time.Now().Add(lockPatience); ; time.Sleep(lockPollInterval) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			return err
		}
	}
}
