package mutants

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// settings are the parameters of the kernel that no namespace has for itself, by their files.
type settings map[string][]byte

// sharedSettings are where they are; net is of the network namespace.
var sharedSettings = []string{"kernel", "vm", "fs", "dev", "abi", "debug"}

// kernelsOwn are written by the kernel, or say no twice.
var kernelsOwn = []string{"/proc/sys/kernel/ns_last_pid", "/proc/sys/kernel/random/", "/proc/sys/fs/binfmt_misc/"}

// readSettings reads what can be read and written.
func readSettings() (settings, error) {
	found := settings{}
	for _, dir := range sharedSettings {
		err := filepath.WalkDir("/proc/sys/"+dir, func(file string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() || isKernels(file) {
				return nil // not every kernel has everything
			}
			info, err := entry.Info()
			if err != nil || info.Mode()&0o444 == 0 || info.Mode()&0o222 == 0 {
				return nil
			}
			if text, err := os.ReadFile(file); err == nil {
				found[file] = text
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		return nil, errors.New("no parameter of the kernel can be read")
	}
	return found, nil
}

func isKernels(file string) bool {
	for _, own := range kernelsOwn {
		if strings.HasPrefix(file, own) {
			return true
		}
	}
	return false
}

// restore sets back what a trial has changed, and says what that was.
func (s settings) restore() (changed []string, err error) {
	for file, before := range s {
		now, failed := os.ReadFile(file)
		if failed == nil && bytes.Equal(now, before) {
			continue
		}
		changed = append(changed, file)
		if failed := os.WriteFile(file, before, 0); failed != nil {
			err = errors.Join(err, fmt.Errorf("%s is not as it was: %w", file, failed))
		}
	}
	return changed, err
}
