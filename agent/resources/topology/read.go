package topology

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"
)

const nodeDir = "devices/system/node"

// ReadNodes lists the NUMA nodes of a machine and their CPUs, from the files of /sys. A kernel that knows of none has node 0.
func ReadNodes(sys fs.FS) (map[int]cpuset.CPUSet, error) {
	found, err := fs.Glob(sys, nodeDir+"/node[0-9]*")
	if err != nil {
		return nil, err
	}
	nodes := map[int]cpuset.CPUSet{}
	for _, dir := range found {
		id, err := strconv.Atoi(strings.TrimPrefix(path.Base(dir), "node"))
		if err != nil || id >= NodesMax {
			return nil, fmt.Errorf("%s: a NUMA node has a number below %d", dir, NodesMax)
		}
		text, err := fs.ReadFile(sys, dir+"/cpulist")
		if err != nil {
			return nil, err
		}
		if nodes[id], err = cpuset.Parse(strings.TrimSpace(string(text))); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	if len(nodes) == 0 {
		nodes[0] = cpuset.New()
	}
	return nodes, nil
}

// ReadDistances says how far each NUMA node is from each other, 10 from itself, as the firmware tells.
func ReadDistances(sys fs.FS) (map[int]map[int]int, error) {
	nodes, err := ReadNodes(sys)
	if err != nil {
		return nil, err
	}
	ids := NodesOf()
	for id := range nodes {
		ids |= NodesOf(id)
	}
	out := map[int]map[int]int{}
	for _, id := range ids.IDs() {
		text, err := fs.ReadFile(sys, fmt.Sprintf("%s/node%d/distance", nodeDir, id))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		out[id] = map[int]int{}
		for i, field := range strings.Fields(string(text)) {
			if i < ids.Count() {
				if out[id][ids.IDs()[i]], err = strconv.Atoi(field); err != nil {
					return nil, fmt.Errorf("node%d/distance: %w", id, err)
				}
			}
		}
	}
	return out, nil
}
