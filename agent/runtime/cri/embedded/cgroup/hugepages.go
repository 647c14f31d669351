package cgroup

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/cgroups"
)

// hugetlb is the controller that counts huge pages.
const hugetlb = "hugetlb"

// HugePages reports whether groups of this machine can limit huge pages: the controller is mounted, or enabled with v2.
func HugePages() bool {
	if V2() {
		controllers, err := os.ReadFile("/sys/fs/cgroup/cgroup.controllers")
		return err == nil && slices.Contains(strings.Fields(string(controllers)), hugetlb)
	}
	group, err := Open("/")
	return err == nil && group.dirs[hugetlb] != ""
}

// settable are the limits that the group in dir has files for. Where the kernel does not count huge pages there are none, as with a
// kubelet, and of a size that it does not have nothing can be taken.
func settable(dir, file string, bytesBySize map[string]uint64) []*cgroups.HugepageLimit {
	var out []*cgroups.HugepageLimit
	for size, bytes := range bytesBySize {
		if _, err := os.Stat(filepath.Join(dir, hugetlb+"."+size+file)); dir != "" && err == nil {
			out = append(out, &cgroups.HugepageLimit{Pagesize: size, Limit: bytes})
		}
	}
	return out
}

func (g *Group) hugePageLimits(bytesBySize map[string]uint64) []*cgroups.HugepageLimit {
	if V2() {
		return settable(g.dirs[""], ".max", bytesBySize)
	}
	return settable(g.dirs[hugetlb], ".limit_in_bytes", bytesBySize)
}
