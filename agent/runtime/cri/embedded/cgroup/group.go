package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/cgroups"
	fs1 "github.com/opencontainers/cgroups/fs"
	"github.com/opencontainers/cgroups/fs2"
	"github.com/opencontainers/cgroups/manager"
	"golang.org/x/sys/unix"
)

// Limits of one group; zero values are not set.
type Limits struct {
	// CPUShares is the v1 weight, 2..262144; on v2 it is converted.
	CPUShares uint64
	// CPUQuota microseconds may be used per CPUPeriod microseconds.
	CPUQuota  int64
	CPUPeriod uint64
	// MemoryBytes and SwapBytes (memory plus swap); -1 is unlimited.
	MemoryBytes int64
	SwapBytes   int64
	CPUs, Mems  string
	PIDs        int64
	// HugePageBytes are by the size of a page as the kernel names it, such as 2MB; 0 is a limit too.
	HugePageBytes map[string]uint64
	// Unified holds v2 files by name.
	Unified map[string]string
}

// Usage of one group since it was created.
type Usage struct {
	CPUNanoseconds    uint64
	MemoryBytes       uint64
	WorkingSetBytes   uint64
	RSSBytes          uint64
	MemoryLimitBytes  uint64 // 0 means unlimited
	PageFaults        uint64
	MajorPageFaults   uint64
	Processes         uint64
	ThrottledNanosecs uint64
	// Pressure is how long its tasks waited for what they needed, in microseconds and percent; nil where the kernel does not tell: with
	// cgroup v1, or without PSI.
	CPUPressure, MemoryPressure, IOPressure *cgroups.PSIStats
}

// KillTimeMax bounds Kill; a process in an uninterruptible system call outlasts it.
const KillTimeMax = 10 * time.Second

const killPollInterval = 2 * time.Millisecond

// ErrNotEmpty says that processes survived KillTimeMax.
var ErrNotEmpty = errors.New("cgroup still has processes")

// Group is one control group, existing or not. dirs maps controllers to directories ("" on v2).
type Group struct {
	path    string
	manager cgroups.Manager
	dirs    map[string]string
}

// V2 says whether this machine has the unified hierarchy.
func V2() bool { return cgroups.IsCgroup2UnifiedMode() }

// Open names the group at path, absolute below the hierarchy's root. It touches nothing.
func Open(path string) (*Group, error) {
	m, err := manager.New(&cgroups.Cgroup{Path: path, Resources: &cgroups.Resources{}})
	if err != nil {
		return nil, fmt.Errorf("cgroup %s below /sys/fs/cgroup: %w", path, err)
	}
	return &Group{path: path, manager: m, dirs: maps.Clone(m.GetPaths())}, nil
}

// Create makes the group and sets its limits; every device is allowed that its parents allow.
func (g *Group) Create(limits Limits) error {
	if err := g.manager.Apply(-1); err != nil {
		return fmt.Errorf("create cgroup %s: %w", g.path, err)
	}
	return g.Set(limits)
}

// Set changes the limits of an existing group.
func (g *Group) Set(limits Limits) error {
	resources := &cgroups.Resources{
		CpuQuota: limits.CPUQuota, CpuPeriod: limits.CPUPeriod, CpusetCpus: limits.CPUs, CpusetMems: limits.Mems,
		Memory: limits.MemoryBytes, MemorySwap: limits.SwapBytes, SkipDevices: true,
		HugetlbLimit: g.hugePageLimits(limits.HugePageBytes),
	}
	if limits.PIDs != 0 {
		resources.PidsLimit = &limits.PIDs
	}
	if V2() {
		resources.CpuWeight = cgroups.ConvertCPUSharesToCgroupV2Value(limits.CPUShares)
		resources.Unified = limits.Unified
	} else {
		resources.CpuShares = limits.CPUShares
	}
	if err := g.manager.Set(resources); err != nil {
		return fmt.Errorf("limit cgroup %s: %w", g.path, err)
	}
	return nil
}

// Dirs are its directories: one of each controller of v1, and that of v2.
func (g *Group) Dirs() []string { return slices.Collect(maps.Values(g.dirs)) }

// Unified is its directory of v2, empty on a machine that has v1 alone.
func (g *Group) Unified() string { return g.dirs[""] }

// Mounts maps each v1 controller to its directory; nil on v2.
func (g *Group) Mounts() map[string]string {
	if V2() {
		return nil
	}
	mounts := map[string]string{}
	for controller, dir := range g.dirs {
		if filepath.Base(controller) == controller && controller != "" && controller != "name=systemd" {
			mounts[controller] = dir
		}
	}
	return mounts
}

// Adopt puts a process into the group, unless it goes there by itself (v1).
func (g *Group) Adopt(pid int) error {
	if !V2() {
		return nil
	}
	return g.Add(pid)
}

// Add puts a process into the group.
func (g *Group) Add(pid int) error {
	if err := g.manager.Apply(pid); err != nil {
		return fmt.Errorf("join cgroup %s: %w", g.path, err)
	}
	return nil
}

// OOMKills counts the processes of this group which the kernel killed for lack of memory; 0 when it cannot be known.
func (g *Group) OOMKills() uint64 {
	read, dir := fs1.OOMKillCount, g.dirs["memory"]
	if V2() {
		read, dir = fs2.OOMKillCount, g.dirs[""]
	}
	count, err := read(dir)
	if err != nil {
		return 0
	}
	return count
}

// Usage reads the counters.
func (g *Group) Usage() (Usage, error) {
	wanted := cgroups.CPU | cgroups.Memory | cgroups.Pids
	if g.Unified() != "" {
		wanted |= cgroups.IO // only for its pressure, which v1 has not
	}
	stats, err := g.manager.Stats(&cgroups.StatsOptions{Controllers: wanted})
	if err != nil {
		return Usage{}, fmt.Errorf("cgroup %s: %w", g.path, err)
	}
	memory := stats.MemoryStats
	usage := Usage{
		CPUNanoseconds:    stats.CpuStats.CpuUsage.TotalUsage,
		MemoryBytes:       memory.Usage.Usage,
		Processes:         stats.PidsStats.Current,
		PageFaults:        memory.Stats["pgfault"],
		MajorPageFaults:   memory.Stats["pgmajfault"],
		ThrottledNanosecs: stats.CpuStats.ThrottlingData.ThrottledTime,
		CPUPressure:       stats.CpuStats.PSI, MemoryPressure: memory.PSI, IOPressure: stats.BlkioStats.PSI,
	}
	inactive, rss := "total_inactive_file", "total_rss"
	if V2() {
		inactive, rss = "inactive_file", "anon"
	}
	usage.RSSBytes = memory.Stats[rss]
	usage.WorkingSetBytes = usage.MemoryBytes - min(usage.MemoryBytes, memory.Stats[inactive])
	if limit := memory.Usage.Limit; limit < math.MaxInt64/2 {
		usage.MemoryLimitBytes = limit
	}
	return usage, nil
}

// Kill ends every process of the group and its children and waits until they are gone.
func (g *Group) Kill() error {
	for deadline := time.Now().Add(KillTimeMax); ; {
		pids, err := g.members()
		if err != nil {
			return fmt.Errorf("cgroup %s: %w", g.path, err)
		}
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
				return fmt.Errorf("kill process %d of cgroup %s: %w", pid, g.path, err)
			}
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%w: %s", ErrNotEmpty, g.path)
		}
		time.Sleep(killPollInterval)
	}
}

// members are the numbers of the processes of the group and its children. With v1 alone they are those of threads, which end their
// process just as well: one that boots a container has only one thread in here, and enters one hierarchy after the other.
func (g *Group) members() (all []int, err error) {
	file := "cgroup.procs"
	if g.Unified() == "" {
		file = "tasks"
	}
	if all, err = membersOf(g.anyDir(), file); err != nil || len(all) > 0 {
		return all, err // it is asked again and again: the others are looked at when nobody is there any more
	}
	for _, dir := range g.dirs {
		below, err := membersOf(dir, file)
		if err != nil {
			return nil, err
		}
		all = append(all, below...)
	}
	return all, nil
}

// membersOf are the numbers in all files of that name below dir.
func membersOf(dir, file string) (all []int, err error) {
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Name() != file {
			return ignoreGone(err)
		}
		content, err := os.ReadFile(path)
		for number := range strings.FieldsSeq(string(content)) {
			pid, bad := strconv.Atoi(number)
			all, err = append(all, pid), errors.Join(err, bad)
		}
		return ignoreGone(err)
	})
	return all, err
}

// ignoreGone is nil for a group that was removed meanwhile; the kernel says ENODEV of files that are open then.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil
	}
	return err
}

// anyDir is one directory of the group: its processes are in all of them.
func (g *Group) anyDir() string {
	for _, controller := range []string{"", "pids", "memory", "cpu"} {
		if dir := g.dirs[controller]; dir != "" {
			return dir
		}
	}
	for _, dir := range g.dirs {
		return dir
	}
	return ""
}

// Destroy removes the group; its processes must be gone.
func (g *Group) Destroy() error {
	if err := g.manager.Destroy(); err != nil {
		return fmt.Errorf("remove cgroup %s: %w", g.path, err)
	}
	return nil
}

// TrimParents removes the parents of a destroyed group, as far as they are empty; of a group that is not below a node's, such
// as a kubelet's, they are others'.
func (g *Group) TrimParents() {
	if !strings.HasPrefix(g.path, NodePrefix) {
		return
	}
	for _, dir := range g.dirs {
		for range strings.Count(g.path, "/") - 1 {
			dir = filepath.Dir(dir)
			if os.Remove(dir) != nil {
				break // another pod is in there
			}
		}
	}
}
