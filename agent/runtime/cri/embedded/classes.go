package embedded

import (
	"errors"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"
)

// Weights of the CPU as a kubelet gives them.
const (
	sharesMin    = 2 // what asks for nothing
	sharesMax    = 262144
	sharesPerCPU = 1024
	// allPodsGroup is the name of the group of all pods, below which the agent puts those of the classes.
	allPodsGroup = "kubepods"
	// podsPIDsPercent of the machine's process numbers are for all pods together, the rest is for the machine; one pod has
	// at most podPIDsPercent of them, so that it cannot take those of all others.
	podsPIDsPercent, podPIDsPercent = 90, 45
)

// weighAbove gives the groups above a pod their part of the CPU, which is what the pods below them ask for: without it a
// class of pods that asks for nothing would weigh as much as all that asks for much. The group of all pods, and the node's
// own, weigh as the machine does and are bounded by its memory and its process numbers. s comes, or goes. paths is
// held.
func (g *groups) weighAbove(s *sandbox, comes bool) error {
	requested := g.requestedShares(s, comes)
	for dir := path.Dir(s.record.CgroupPath); strings.HasPrefix(dir, g.cgroupRoot()); dir = path.Dir(dir) {
		group, err := cgroup.Open(dir)
		if err != nil {
			return err
		}
		limits := cgroup.Limits{CPUShares: min(sharesMax, max(sharesMin, requested[dir]))}
		if dir == g.cgroupRoot() || path.Base(dir) == allPodsGroup {
			if limits, err = g.machineLimits(); err != nil {
				return err
			}
		}
		if err := group.Set(limits); err != nil && !errors.Is(err, os.ErrNotExist) { // it goes with its last pod
			return err
		}
	}
	return nil
}

// requestedShares sums what pods ask for, by the groups above them; changing counts if it comes.
func (g *groups) requestedShares(changing *sandbox, comes bool) map[string]uint64 {
	all := slices.DeleteFunc(g.table.allSandboxes(), func(s *sandbox) bool { return s == changing })
	if comes {
		all = append(all, changing)
	}
	sums := map[string]uint64{}
	for _, s := range all {
		shares := s.config.GetLinux().GetResources().GetCpuShares()
		if shares <= sharesMin {
			continue // it asked for nothing
		}
		for dir := path.Dir(s.record.CgroupPath); strings.HasPrefix(dir, g.cgroupRoot()); dir = path.Dir(dir) {
			sums[dir] += uint64(shares)
		}
	}
	return sums
}

// machineLimits are those of all pods together: what is not reserved.
func (g *groups) machineLimits() (cgroup.Limits, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return cgroup.Limits{}, os.NewSyscallError("sysinfo", err)
	}
	pids, err := pidsMax()
	return cgroup.Limits{
		CPUShares:   min(sharesMax, uint64(runtime.NumCPU())*sharesPerCPU),
		MemoryBytes: max(1<<20, int64(info.Totalram)*int64(info.Unit)-g.config.ReservedMemoryBytes),
		PIDs:        max(1, min(pids*podsPIDsPercent/100, pids-g.config.ReservedPIDs)),
	}, err
}

// pidsMax is how many process numbers the machine has.
func pidsMax() (int64, error) {
	least := int64(0)
	for _, file := range []string{"/proc/sys/kernel/pid_max", "/proc/sys/kernel/threads-max"} {
		data, err := os.ReadFile(file)
		if err != nil {
			return 0, err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
		if err != nil || n <= 0 {
			return 0, fmt.Errorf("%s: %q", file, data)
		}
		if least == 0 || n < least {
			least = n
		}
	}
	return least, nil
}
