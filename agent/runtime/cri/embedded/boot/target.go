package boot

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// rootDir is an O_PATH descriptor of the container's root. Every path below it is resolved by the kernel as if it
// were the process's root: a symlink or ".." in a hostile image cannot lead out.
type rootDir int

const directoryMode = 0o755

func (r rootDir) open(name string, flags uint64) (int, error) {
	how := unix.OpenHow{
		Flags:   flags | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS,
	}
	for {
		fd, err := unix.Openat2(int(r), "./"+strings.TrimLeft(path.Clean("/"+name), "/"), &how)
		// EAGAIN: a rename raced with the walk. The kernel asks for another try.
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// openDir opens the directory name, creating what is missing.
func (r rootDir) openDir(name string) (int, error) {
	fd, err := r.open(name, unix.O_PATH|unix.O_DIRECTORY)
	if !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	name = path.Clean("/" + name)
	parent, err := r.openDir(path.Dir(name))
	if err != nil {
		return 0, err
	}
	defer unix.Close(parent)
	if err := unix.Mkdirat(parent, path.Base(name), directoryMode); err != nil {
		return 0, err
	}
	return r.open(name, unix.O_PATH|unix.O_DIRECTORY)
}

// openFile opens the non-directory name, creating an empty file when it is missing.
func (r rootDir) openFile(name string) (int, error) {
	fd, err := r.open(name, unix.O_PATH)
	if !errors.Is(err, unix.ENOENT) {
		return fd, err
	}
	name = path.Clean("/" + name)
	parent, err := r.openDir(path.Dir(name))
	if err != nil {
		return 0, err
	}
	defer unix.Close(parent)
	created, err := unix.Openat(parent, path.Base(name), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o644)
	if err != nil {
		return 0, err
	}
	defer unix.Close(created)
	return r.open(name, unix.O_PATH)
}

// handle is a path by which mount(2) reaches exactly the object that was opened.
func handle(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }
