package noswap

import (
	"os"
	"path/filepath"
	"strings"
	"sync"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Accounting is how the kernel counts swap.
type Accounting int

// The three kinds: not at all; together with memory (cgroup v1); by itself (v2).
const (
	None Accounting = iota
	WithMemory
	Alone
)

// swapMax is the file of a group's limit on v2.
const swapMax = "memory.swap.max"

// Ask has the container kept from swap. On cgroup v1 this needs a memory limit, so what has none may swap, as with a kubelet.
func (a Accounting) Ask(r *runtimeapi.LinuxContainerResources) {
	switch a {
	case WithMemory:
		r.MemorySwapLimitInBytes = r.MemoryLimitInBytes
	case Alone:
		if r.Unified == nil {
			r.Unified = map[string]string{}
		}
		r.Unified[swapMax] = "0"
	}
}

// OfThisMachine looks once.
var OfThisMachine = sync.OnceValue(func() Accounting {
	own, _ := os.ReadFile("/proc/self/cgroup")
	return look("/sys/fs/cgroup", string(own))
})

// look reads which files there are. own is the content of /proc/self/cgroup. The root of v2 has no limits, so a process
// that is in there looks at the groups below.
func look(root, own string) Accounting {
	if exists(filepath.Join(root, "memory/memory.memsw.limit_in_bytes")) {
		return WithMemory
	}
	for line := range strings.Lines(own) {
		group, unified := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !unified || !exists(filepath.Join(root, "cgroup.controllers")) {
			continue
		}
		if below, _ := filepath.Glob(filepath.Join(root, "*", swapMax)); exists(filepath.Join(root, group, swapMax)) || len(below) > 0 {
			return Alone
		}
	}
	return None
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}
