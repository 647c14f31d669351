package memory

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/base/hugepages"
	"github.com/setpoint-io/setpoint/agent/resources/topology"
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
	pools, err := hugepages.Read(sys, dir)
	for _, pool := range pools {
		into[pool.Name()] = uint64(pool.Bytes())
	}
	return err
}

// Nodes of the machine.
func (t Totals) Nodes() topology.Nodes {
	var out topology.Nodes
	for id := range t {
		out |= topology.NodesOf(id)
	}
	return out
}
