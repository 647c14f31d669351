package place

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/setpoint-io/setpoint/internal/durable"
)

// fileMode lets nobody else read what Secrets may be in.
const fileMode = 0o600

// folder is the path of a folder.
type folder string

// Put implements Place.
func (f folder) Put(_ context.Context, owner, name string, fill func(io.Writer) error) (bytes int64, err error) {
	part := filepath.Join(string(f), "."+owner+".backup.part")
	err = durable.Replace(part, filepath.Join(string(f), name), fileMode, func(file *os.File) error {
		written, err := write(file, fill)
		if err != nil {
			return err
		}
		bytes = written.bytes
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return err
		}
		return written.same(file)
	})
	return bytes, err
}

// Files implements Place.
func (f folder) Files(_ context.Context, prefix string, max int) (files []File, err error) {
	entries, err := os.ReadDir(string(f))
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), prefix) {
			continue
		}
		info, err := entry.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue // gone meanwhile, or no file
		}
		if files = append(files, File{entry.Name(), info.Size()}); len(files) == max {
			break
		}
	}
	return files, err
}

// Open implements Place.
func (f folder) Open(_ context.Context, name string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(string(f), name))
}

// Remove implements Place.
func (f folder) Remove(_ context.Context, name string) error {
	if err := os.Remove(filepath.Join(string(f), name)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
