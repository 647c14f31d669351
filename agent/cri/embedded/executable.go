package embedded

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// executableFDMin is above every descriptor that a child is given, so that none overwrites the executable's.
const executableFDMin = 100

// executable is the file that runs as shim, init and exec: opened through a detached read-only mount, so that a
// container that gets hold of it by /proc/<pid>/exe cannot write to the host's copy, and an upgrade of the file
// does not mix versions.
type executable struct {
	path string
	fd   int
}

// openExecutable takes this executable when path is empty: the very file that runs if possible; by its name when it
// was started from another mount namespace, whose mounts cannot be copied here.
func openExecutable(path string) (*executable, error) {
	if path != "" {
		return sealExecutable(path)
	}
	sealed, err := sealExecutable("/proc/self/exe")
	if !errors.Is(err, unix.EINVAL) {
		return sealed, err
	}
	if path, err = os.Executable(); err != nil {
		return nil, err
	}
	return sealExecutable(path)
}

func sealExecutable(path string) (*executable, error) {
	tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("executable %s: %w", path, err)
	}
	defer unix.Close(tree)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return nil, fmt.Errorf("executable %s: %w", path, err)
	}
	fd, err := unix.FcntlInt(uintptr(tree), unix.F_DUPFD_CLOEXEC, executableFDMin)
	if err != nil {
		return nil, fmt.Errorf("executable %s: %w", path, err)
	}
	return &executable{path: fmt.Sprintf("/proc/self/fd/%d", fd), fd: fd}, nil
}

func (e *executable) close() error { return os.NewSyscallError("close", unix.Close(e.fd)) }
