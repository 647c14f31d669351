package executable

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/shim"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/shimbinary"
)

// executableFDMin is above every descriptor that a child is given, so that none overwrites the executable's.
const executableFDMin = 100

// Executable is the file that runs as shim, init and exec: opened through a detached read-only mount, so that a
// container that gets hold of it by /proc/<pid>/exe cannot write to the host's copy, and an upgrade of the file
// does not mix versions.
type Executable struct {
	// Path starts it, in this process only.
	Path string
	fd   int
}

// Open takes, in this order: the configured file, the small helper if this build carries it, this executable.
// That one is opened as the very file that runs if possible; by its name when it was started from another mount
// namespace, whose mounts cannot be copied here.
func Open(path string) (*Executable, error) {
	if path != "" {
		return sealExecutable(path)
	}
	if small := shimbinary.Bytes(); len(small) > 0 {
		return memoryExecutable(small)
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

// memoryExecutable is a file that exists in memory only and can never be written again.
func memoryExecutable(content []byte) (*Executable, error) {
	memory, err := unix.MemfdCreate(shim.Name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_EXEC)
	if errors.Is(err, unix.EINVAL) { // kernels before 6.3: executable anyway, and the flag unknown
		memory, err = unix.MemfdCreate(shim.Name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, fmt.Errorf("shim in memory: %w", err)
	}
	file := os.NewFile(uintptr(memory), shim.Name)
	defer file.Close()
	if _, err := file.Write(content); err != nil {
		return nil, fmt.Errorf("shim in memory: %w", err)
	}
	const seals = unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_WRITE
	if _, err := unix.FcntlInt(file.Fd(), unix.F_ADD_SEALS, seals); err != nil {
		return nil, fmt.Errorf("shim in memory: %w", err)
	}
	// A file open for writing cannot be executed: open it again, read-only.
	reader, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("shim in memory: %w", err)
	}
	defer unix.Close(reader)
	return highExecutable(reader)
}

func sealExecutable(path string) (*Executable, error) {
	tree, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("executable %s: %w", path, err)
	}
	defer unix.Close(tree)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attr); err != nil {
		return nil, fmt.Errorf("executable %s: %w", path, err)
	}
	return highExecutable(tree)
}

func highExecutable(low int) (*Executable, error) {
	fd, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD_CLOEXEC, executableFDMin)
	if err != nil {
		return nil, fmt.Errorf("executable: %w", err)
	}
	return &Executable{Path: fmt.Sprintf("/proc/self/fd/%d", fd), fd: fd}, nil
}

// Close ends the use of Path; what runs goes on.
func (e *Executable) Close() error { return os.NewSyscallError("close", unix.Close(e.fd)) }
