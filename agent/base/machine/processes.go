package machine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Process is one that this one sees, by its number. Of one that has ended, or of which it may know
// nothing, every answer is empty.
type Process int

// Processes are all that this one sees.
func Processes() ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []Process
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			found = append(found, Process(pid))
		}
	}
	return found, nil
}

func (p Process) file(name string) string { return filepath.Join("/proc", strconv.Itoa(int(p)), name) }

// Args are the words with which it was started.
func (p Process) Args() []string {
	text, err := os.ReadFile(p.file("cmdline"))
	if err != nil || len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// deletedMark is what the kernel puts behind the name of an open file that was deleted.
const deletedMark = " (deleted)"

// Files are the names of its open files, also of those that were deleted.
func (p Process) Files() []string {
	entries, err := os.ReadDir(p.file("fd"))
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		if name, err := os.Readlink(filepath.Join(p.file("fd"), entry.Name())); err == nil {
			names = append(names, strings.TrimSuffix(name, deletedMark))
		}
	}
	return names
}

// RootUpper is where what it writes to its root goes, if that is an overlay file system.
func (p Process) RootUpper() string {
	mounts, err := readMounts(p.file("mountinfo"))
	if err != nil {
		return ""
	}
	for _, m := range mounts {
		if m.path == "/" && m.upper != "" {
			return m.upper
		}
	}
	return ""
}

// SameNetwork tells whether its network is this process's.
func (p Process) SameNetwork() bool { return sameFile(p.file("ns/net"), "/proc/self/ns/net") }

// Sees tells whether path leads it to where it leads this process: with a root or mounts of its own, as in a
// container, it may not. Of a path that does not exist, what does exist of it is compared.
func (p Process) Sees(path string) bool {
	for ; ; path = filepath.Dir(path) {
		_, here := os.Stat(path)
		_, there := os.Stat(p.file("root") + path)
		switch {
		case here == nil && there == nil:
			return sameFile(p.file("root")+path, path)
		case !errors.Is(here, fs.ErrNotExist) || !errors.Is(there, fs.ErrNotExist) || path == "/":
			return false
		}
	}
}

func sameFile(a, b string) bool {
	first, errA := os.Stat(a)
	second, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(first, second)
}
