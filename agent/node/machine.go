package node

import (
	"bufio"
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// machine is what does not change while the agent runs.
type machine struct {
	cpus                      int
	memoryBytes, storageBytes int64
	machineID, systemUUID     string
	bootID, kernel, osImage   string
}

func readMachine(dataDir string) machine {
	total, _ := diskBytes(dataDir)
	return machine{
		cpus:         runtime.NumCPU(),
		memoryBytes:  memInfo()["MemTotal"],
		storageBytes: total,
		machineID:    firstLine("/etc/machine-id"),
		systemUUID:   firstLine("/sys/class/dmi/id/product_uuid"),
		bootID:       firstLine("/proc/sys/kernel/random/boot_id"),
		kernel:       firstLine("/proc/sys/kernel/osrelease"),
		osImage:      prettyOS(),
	}
}

// pressures says which resource is short right now.
type pressures struct{ memory, disk, pids bool }

func readPressure(dataDir string) pressures {
	mem := memInfo()
	total, free := diskBytes(dataDir)
	return pressures{
		memory: mem["MemTotal"] > 0 && mem["MemAvailable"] < memoryFreeMinBytes,
		disk:   total > 0 && free*100 < total*diskFreeMinPercent,
		pids:   pidsShort(),
	}
}

// memInfo is /proc/meminfo in bytes.
func memInfo() map[string]int64 {
	out := map[string]int64{}
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return out
	}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		name, rest, ok := strings.Cut(s.Text(), ":")
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		if err == nil {
			out[name] = kib << 10
		}
	}
	return out
}

// Disk is the size and the free space, in bytes, of the file system that holds path.
func Disk(path string) (capacity, available int64, err error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	size := int64(st.Bsize) // another type on other systems
	return int64(st.Blocks) * size, int64(st.Bavail) * size, nil
}

// diskBytes is Disk, or zeros.
func diskBytes(dir string) (total, free int64) {
	total, free, _ = Disk(dir)
	return total, free
}

// pidsShort compares the threads in /proc/loadavg ("1/213") with the limit.
func pidsShort() bool {
	fields := strings.Fields(firstLine("/proc/loadavg"))
	limit, err := strconv.Atoi(firstLine("/proc/sys/kernel/pid_max"))
	if err != nil || len(fields) < 4 {
		return false
	}
	_, all, _ := strings.Cut(fields[3], "/")
	used, err := strconv.Atoi(all)
	return err == nil && limit-used < pidsFreeMin
}

func firstLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}

func prettyOS() string {
	data, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return "Linux"
	}
	for line := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(strings.TrimSpace(v), `"`)
		}
	}
	return "Linux"
}
