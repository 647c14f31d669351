package volumes

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ReadFile reads a file in a volume, of at most so many bytes. Whoever writes to the volume may have made anything of its name:
// links are followed inside the volume only, and what is no plain file is not opened.
func ReadFile(volume, path string, sizeMax int64) ([]byte, error) {
	if !filepath.IsLocal(path) {
		return nil, fmt.Errorf("%q leads out of the volume", path)
	}
	found, err := openPath(volume, path)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	if info, err := found.Stat(); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("it is no plain file")
	}
	f, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", found.Fd()), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: errors.Unwrap(err)}
	}
	defer f.Close()
	body, err := io.ReadAll(io.LimitReader(f, sizeMax+1))
	if err == nil && int64(len(body)) > sizeMax {
		err = fmt.Errorf("it has more than %d bytes", sizeMax)
	}
	return body, err
}
