package cpus

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"k8s.io/utils/cpuset"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
)

const cpuDir = "devices/system/cpu"

// Read learns where the CPUs stand that are online, from the files of /sys. What a machine does not tell (virtual ones often do not) is as
// if each CPU were a core of one socket and one NUMA node.
func Read(sys fs.FS) (Topology, error) {
	online, err := readSet(sys, cpuDir+"/online")
	if err != nil {
		return nil, fmt.Errorf("could not detect number of cpus: %w", err)
	}
	nodes, err := topology.ReadNodes(sys)
	if err != nil {
		return nil, err
	}
	out := Topology{}
	for _, id := range online.List() {
		dir := fmt.Sprintf("%s/cpu%d", cpuDir, id)
		c := CPU{Socket: max(0, readNumber(sys, dir+"/topology/physical_package_id"))}
		for node, cpus := range nodes {
			if cpus.Contains(id) {
				c.Node = node
			}
		}
		c.Core = lowest(sys, dir+"/topology/thread_siblings_list", online, id)
		c.Cache = lowest(sys, lastCache(sys, dir)+"/shared_cpu_list", online, -1)
		out[id] = c
	}
	for id, c := range out {
		if c.Cache < 0 { // as upstream: there is nothing smaller than the socket
			c.Cache = firstOf(out, c.Socket)
			out[id] = c
		}
	}
	return out, nil
}

func firstOf(t Topology, socket int) int {
	return t.where(func(c CPU) bool { return c.Socket == socket }).List()[0]
}

// lastCache is the folder of the last-level cache that several cores may share: level 3.
func lastCache(sys fs.FS, dir string) string {
	found, err := fs.Glob(sys, dir+"/cache/index*")
	if err != nil {
		return ""
	}
	for _, at := range found {
		if readNumber(sys, at+"/level") == 3 {
			return at
		}
	}
	return ""
}

// lowest is the lowest number in a set of CPUs that are online, or else without.
func lowest(sys fs.FS, name string, online cpuset.CPUSet, without int) int {
	set, err := readSet(sys, path.Clean(name))
	if err != nil || set.Intersection(online).IsEmpty() {
		return without
	}
	return set.Intersection(online).List()[0]
}

var errEmpty = errors.New("the file names no CPU")

func readSet(sys fs.FS, name string) (cpuset.CPUSet, error) {
	text, err := fs.ReadFile(sys, name)
	if err != nil {
		return cpuset.New(), err
	}
	set, err := cpuset.Parse(strings.TrimSpace(string(text)))
	if err == nil && set.IsEmpty() {
		err = fmt.Errorf("%s: %w", name, errEmpty)
	}
	return set, err
}

// readNumber is the number in a file, -1 if there is none.
func readNumber(sys fs.FS, name string) int {
	text, err := fs.ReadFile(sys, name)
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return -1
	}
	return n
}
