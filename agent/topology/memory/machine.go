package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/setpoint-io/setpoint/agent/topology"
)

// Totals are the bytes that each NUMA node has, by resource: memory, of which huge pages are a part, and hugepages-<size>.
type Totals map[int]map[corev1.ResourceName]uint64

// Read learns the totals from the files of /sys. A machine that tells of no NUMA nodes has all its bytes on node 0.
func Read(sys fs.FS, allBytes uint64) (Totals, error) {
	nodes, err := topology.ReadNodes(sys)
	if err != nil {
		return nil, err
	}
	out := Totals{}
	for id := range nodes {
		dir := fmt.Sprintf("devices/system/node/node%d", id)
		bytes, err := readTotal(sys, dir+"/meminfo")
		if errors.Is(err, fs.ErrNotExist) {
			bytes, err = allBytes, nil
		}
		if err != nil {
			return nil, err
		}
		out[id] = map[corev1.ResourceName]uint64{corev1.ResourceMemory: bytes}
		if err := readHugePages(sys, dir+"/hugepages", out[id]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

var errNoTotal = errors.New("there is no line MemTotal")

// readTotal finds the line "Node 0 MemTotal: 123 kB".
func readTotal(sys fs.FS, name string) (uint64, error) {
	text, err := fs.ReadFile(sys, name)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if _, after, ok := strings.Cut(line, "MemTotal:"); ok {
			kilobytes, err := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(after), "kB")), 10, 53)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("%s: %w", name, errNoTotal)
}

func readHugePages(sys fs.FS, dir string, into map[corev1.ResourceName]uint64) error {
	found, err := fs.Glob(sys, dir+"/hugepages-*kB")
	if err != nil {
		return err
	}
	for _, at := range found {
		size, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimPrefix(path.Base(at), "hugepages-"), "kB"), 10, 53)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		text, err := fs.ReadFile(sys, at+"/nr_hugepages")
		if err != nil {
			return err
		}
		count, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 53)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		name := corev1.ResourceHugePagesPrefix + resource.NewQuantity(int64(size<<10), resource.BinarySI).String()
		into[corev1.ResourceName(name)] = size << 10 * count
	}
	return nil
}

// Nodes of the machine.
func (t Totals) Nodes() topology.Nodes {
	var out topology.Nodes
	for id := range t {
		out |= topology.NodesOf(id)
	}
	return out
}
