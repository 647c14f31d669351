package hugepages

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Machine is where the kernel tells of all pages of the machine, below /sys.
const Machine = "kernel/mm/hugepages"

// Pool is the pages of one size that a machine has, or one of its NUMA nodes; there may be none.
type Pool struct{ PageBytes, Pages int64 }

// Read lists the sizes that the kernel knows, the smallest first. A folder that does not exist has none.
func Read(sys fs.FS, dir string) ([]Pool, error) {
	found, err := fs.Glob(sys, dir+"/hugepages-*kB")
	if err != nil {
		return nil, err
	}
	var out []Pool
	for _, at := range found {
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimPrefix(path.Base(at), "hugepages-"), "kB"), 10, 53)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		text, err := fs.ReadFile(sys, at+"/nr_hugepages")
		if err != nil {
			return nil, err
		}
		pages, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 53)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", at, err)
		}
		out = append(out, Pool{PageBytes: kilobytes << 10, Pages: pages})
	}
	slices.SortFunc(out, func(a, b Pool) int { return int(a.PageBytes - b.PageBytes) })
	return out, nil
}

// Name of the resource, such as hugepages-2Mi.
func (p Pool) Name() corev1.ResourceName {
	return corev1.ResourceName(corev1.ResourceHugePagesPrefix + resource.NewQuantity(p.PageBytes, resource.BinarySI).String())
}

// Bytes of all pages.
func (p Pool) Bytes() int64 { return p.PageBytes * p.Pages }

// Is reports that a resource is memory in huge pages of one size.
func Is(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// Reserve takes the memory that huge pages are made of from what there is to give: it is no memory for anything else.
func Reserve(allocatable, capacity corev1.ResourceList) {
	memory, ok := allocatable[corev1.ResourceMemory]
	if !ok {
		return
	}
	for name, bytes := range capacity {
		if Is(name) {
			memory.Sub(bytes)
		}
	}
	if memory.Sign() < 0 {
		memory.Set(0)
	}
	allocatable[corev1.ResourceMemory] = memory
}
