package node

import (
	"os"
	"runtime"
	"strings"

	"github.com/setpoint-io/setpoint/agent/base/hugepages"
	"github.com/setpoint-io/setpoint/agent/base/measure"
)

// machine is what does not change while the agent runs.
type machine struct {
	cpus                      int
	memoryBytes, storageBytes int64
	hugePages                 []hugepages.Pool
	machineID, systemUUID     string
	bootID, kernel, osImage   string
}

func readMachine(dataDir string) machine {
	total, _, _ := measure.Disk(dataDir) // zeros if it cannot be read
	memory, _ := measure.ReadMemory(measure.Proc)
	pools, _ := hugepages.Read(os.DirFS("/sys"), hugepages.Machine) // none if they cannot be read
	return machine{
		cpus:         runtime.NumCPU(),
		memoryBytes:  memory.Total,
		storageBytes: total,
		hugePages:    pools,
		machineID:    firstLine("/etc/machine-id"),
		systemUUID:   firstLine("/sys/class/dmi/id/product_uuid"),
		bootID:       firstLine("/proc/sys/kernel/random/boot_id"),
		kernel:       firstLine("/proc/sys/kernel/osrelease"),
		osImage:      prettyOS(),
	}
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
