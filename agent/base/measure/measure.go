package measure

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Proc is where the kernel tells about this machine.
const Proc = "/proc"

// ErrForm is returned for a file of the kernel that has another form than expected.
var ErrForm = errors.New("it has another form")

// FileSystem is what the file system that holds a path has, and has left for pods.
type FileSystem struct {
	// Device tells file systems apart.
	Device                      uint64
	CapacityBytes, AvailBytes   int64
	CapacityInodes, AvailInodes int64 // 0 if the file system does not count them
}

// FileSystemOf looks at the file system that holds path.
func FileSystemOf(path string) (FileSystem, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return FileSystem{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	var file unix.Stat_t
	if err := unix.Stat(path, &file); err != nil {
		return FileSystem{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	size := int64(fs.Bsize) // another type on other systems
	return FileSystem{
		Device: uint64(file.Dev), CapacityBytes: int64(fs.Blocks) * size, AvailBytes: int64(fs.Bavail) * size,
		CapacityInodes: int64(fs.Files), AvailInodes: int64(fs.Ffree),
	}, nil
}

// Disk is the size and the free space, in bytes, of the file system that holds path.
func Disk(path string) (capacity, available int64, err error) {
	fs, err := FileSystemOf(path)
	return fs.CapacityBytes, fs.AvailBytes, err
}

// Memory of the machine, in bytes.
type Memory struct {
	Total int64
	// Available is what is free and what was read from files and not used lately; the rest is the working set.
	Available int64
}

// ReadMemory reads a proc file system.
func ReadMemory(proc string) (Memory, error) {
	path := filepath.Join(proc, "meminfo")
	text, err := os.ReadFile(path)
	if err != nil {
		return Memory{}, err
	}
	kib := map[string]int64{}
	for line := range strings.Lines(string(text)) {
		name, rest, _ := strings.Cut(line, ":")
		if n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64); err == nil {
			kib[name] = n
		}
	}
	total, unused := kib["MemTotal"], kib["MemFree"]+kib["Inactive(file)"]
	if total <= 0 || unused < 0 || unused > total {
		return Memory{}, fmt.Errorf("%s: %w", path, ErrForm)
	}
	return Memory{Total: total << 10, Available: unused << 10}, nil
}

// Processes are those of the machine, threads included, and how many there can be.
type Processes struct{ Running, Max int64 }

// ReadProcesses reads a proc file system.
func ReadProcesses(proc string) (Processes, error) {
	limit, err := number(filepath.Join(proc, "sys/kernel/pid_max"))
	if err != nil {
		return Processes{}, err
	}
	threads, err := number(filepath.Join(proc, "sys/kernel/threads-max"))
	if err != nil {
		return Processes{}, err
	}
	path := filepath.Join(proc, "loadavg")
	text, err := os.ReadFile(path) // "0.20 0.18 0.12 1/80 11206": of 80 one runs
	if err != nil {
		return Processes{}, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 4 {
		return Processes{}, fmt.Errorf("%s: %w", path, ErrForm)
	}
	_, all, _ := strings.Cut(fields[3], "/")
	running, err := strconv.ParseInt(all, 10, 64)
	if err != nil {
		return Processes{}, fmt.Errorf("%s: %w", path, err)
	}
	return Processes{Running: running, Max: min(limit, threads)}, nil
}

func number(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	return n, nil
}
