package testlink

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// socketPathMax is what macOS takes, in bytes; Linux takes four more.
const socketPathMax = 103

// longest is a name of a socket in the folder.
const longest = "0123456789abcdef.sock"

// errNotPrivate: what stands there is somebody else's, or open to others.
var errNotPrivate = errors.New("is not a folder of this user alone (mode 0700), so others could pose as the test server")

// place is where the private folder may stand. variable names it, "" if none does.
type place struct{ variable, dir string }

// Folder is the private folder of this user, where the sockets stand: in XDG_RUNTIME_DIR, or that of temporary files, or /tmp if these
// have long paths or cannot be written to.
func Folder() (string, error) {
	own := fmt.Sprintf("setpoint-test-%d", os.Getuid())
	var problems []error
	for _, at := range []place{{"XDG_RUNTIME_DIR", os.Getenv("XDG_RUNTIME_DIR")}, {"TMPDIR", os.TempDir()}, {"", "/tmp"}} {
		path := filepath.Join(at.dir, own)
		if info, err := os.Stat(at.dir); err != nil || !info.IsDir() || !filepath.IsAbs(path) || len(path)+1+len(longest) > socketPathMax {
			continue
		}
		err := makePrivate(path)
		if err == nil {
			return path, nil
		}
		if errors.Is(err, errNotPrivate) {
			return "", fmt.Errorf("%s %w: remove it, or %s", path, errNotPrivate, at.choose())
		}
		problems = append(problems, err)
	}
	return "", errors.Join(append([]error{fmt.Errorf("there is no folder for the socket of the test server, whose path has at most %d bytes: "+
		"set XDG_RUNTIME_DIR to a folder of yours with a short path", socketPathMax)}, problems...)...)
}

// choose says which variable counts.
func (p place) choose() string {
	if p.variable == "" {
		p.variable = "XDG_RUNTIME_DIR"
	}
	return "set " + p.variable + " to a folder of yours"
}

// makePrivate makes the folder, or sees that it is this user's alone.
func makePrivate(path string) error {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || !known || int(owner.Uid) != os.Getuid() || info.Mode().Perm()&0o077 != 0 {
		return errNotPrivate
	}
	return nil
}
