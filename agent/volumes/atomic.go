package volumes

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A volume's content lives in a directory of its own; what the user sees are
// links through ..data, which one rename switches:
//
//	volume/..2026_01_02_03_04_05.123/a/b   the content
//	volume/..data -> ..2026_01_02_03_04_05.123
//	volume/a -> ..data/a
const (
	dataLink    = "..data"
	dataLinkNew = "..data_tmp"
)

// writeAtomically makes dir hold exactly files. Equal content changes nothing.
func writeAtomically(dir string, files map[string]file, group *int64) error {
	if err := checkPaths(files); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	old, _ := root.Readlink(dataLink)
	if old != "" && same(root, old, files) {
		return link(root, files)
	}
	next := time.Now().UTC().Format("..2006_01_02_15_04_05.000000000")
	if err := writeFiles(root, next, files, group); err != nil {
		return errors.Join(err, root.RemoveAll(next))
	}
	if err := switchTo(root, next); err != nil {
		return errors.Join(err, root.RemoveAll(next))
	}
	if err := link(root, files); err != nil {
		return err
	}
	if old != "" {
		return root.RemoveAll(old)
	}
	return nil
}

// checkPaths refuses names that would leave the volume or hide our own.
func checkPaths(files map[string]file) error {
	for name := range files {
		if !filepath.IsLocal(name) || strings.HasPrefix(name, "..") {
			return fmt.Errorf("invalid path %q in volume", name)
		}
	}
	return nil
}

func same(root *os.Root, dir string, files map[string]file) bool {
	found := 0
	err := fs.WalkDir(root.FS(), dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		want, ok := files[name]
		have, err := root.ReadFile(path)
		if err != nil || !ok || !bytes.Equal(have, want.data) {
			return fs.ErrInvalid
		}
		found++
		return nil
	})
	return err == nil && found == len(files)
}

func writeFiles(root *os.Root, dir string, files map[string]file, group *int64) error {
	if err := root.Mkdir(dir, 0o755); err != nil {
		return err
	}
	for name, f := range files {
		path := filepath.Join(dir, name)
		if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := root.WriteFile(path, f.data, 0o600); err != nil {
			return err
		}
		mode := f.mode
		if group != nil {
			if err := root.Chown(path, -1, int(*group)); err != nil {
				return err
			}
			mode |= 0o440
		}
		if f.owner != nil {
			if err := root.Chown(path, int(*f.owner), -1); err != nil {
				return err
			}
		}
		if err := root.Chmod(path, mode); err != nil {
			return err
		}
	}
	return nil
}

func switchTo(root *os.Root, dir string) error {
	if err := root.Remove(dataLinkNew); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := root.Symlink(dir, dataLinkNew); err != nil {
		return err
	}
	return root.Rename(dataLinkNew, dataLink)
}

// link makes the visible names those of files. New names appear after the
// switch and old ones go last, so that every visible name always resolves or
// is already gone from the content.
func link(root *os.Root, files map[string]file) error {
	want := map[string]bool{}
	for name := range files {
		top, _, _ := strings.Cut(name, string(filepath.Separator))
		want[top] = true
	}
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "..") {
			continue
		}
		if !want[e.Name()] {
			if err := root.Remove(e.Name()); err != nil {
				return err
			}
		}
		delete(want, e.Name())
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if err := root.Symlink(filepath.Join(dataLink, name), name); err != nil {
			return err
		}
	}
	return nil
}
