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

// longest is a name of what stands in the folder.
const longest = "0123456789abcdef.sock"

// Folder is the private folder of this user, where the sockets stand: in XDG_RUNTIME_DIR, or that of temporary files, or /tmp if these
// have long paths.
func Folder() (string, error) {
	own := fmt.Sprintf("setpoint-test-%d", os.Getuid())
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"} {
		path := filepath.Join(dir, own)
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || !filepath.IsAbs(path) || len(path)+1+len(longest) > socketPathMax {
			continue
		}
		return path, makePrivate(path)
	}
	return "", fmt.Errorf("there is no folder for the socket of the test server, whose path has at most %d bytes: set TMPDIR to a short one", socketPathMax)
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
		return fmt.Errorf("%s is not a folder of this user alone (mode 0700), so others could pose as the test server: remove it, or set TMPDIR to a folder of yours", path)
	}
	return nil
}
