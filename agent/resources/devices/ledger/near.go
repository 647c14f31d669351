package ledger

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
)

// near reports whether a device is at one of some NUMA nodes.
func (d Device) near(nodes topology.Nodes) bool {
	return slices.ContainsFunc(d.NUMA, func(id int64) bool { return nodes.Has(int(id)) })
}

// Near narrows a choice to devices at some NUMA nodes: to these alone if they are more than are missing, else all of them are taken, and
// those without a place last. No nodes: the choice stays as it is.
func (c Choice) Near(nodes topology.Nodes) Choice {
	placed := func(d Device) bool { return len(d.NUMA) > 0 }
	if nodes == 0 || !slices.ContainsFunc(c.Free, placed) {
		return c
	}
	var at, elsewhere, nowhere []Device
	for _, d := range c.Free {
		switch {
		case d.near(nodes):
			at = append(at, d)
		case placed(d):
			elsewhere = append(elsewhere, d)
		default:
			nowhere = append(nowhere, d)
		}
	}
	if missing := c.Count - len(c.Must); missing < len(at) {
		c.Free = at
		return c
	}
	c.Must, c.Free = slices.Concat(c.Must, at), slices.Concat(elsewhere, nowhere)
	return c
}

// Hints say from which NUMA nodes of the machine a want can be answered; nil: the plugin of the resource names no nodes. A want that names
// no container is of the whole pod.
func (l *Ledger) Hints(w Want, known map[string]Device, machine topology.Nodes) []topology.Hint {
	at := nodesOf(known)
	if at == 0 {
		return nil
	}
	if at &= machine; at == 0 {
		at = machine
	}
	if has := l.has(w.Pod, w.Container, w.Resource); len(has) > 0 {
		if len(has) != w.Count {
			return topology.Impossible()
		}
		return hints(known, has, nil, w.Count, at)
	}
	var free, must []Device
	if w.Container != "" {
		must = l.handedOn(w.Pod, w.Container, w.Resource)
	}
	used := l.inUse(w.Resource)
	for _, d := range known {
		if d.Healthy && !used[d.ID] {
			free = append(free, d)
		}
	}
	if len(free)+len(must) < w.Count {
		return topology.Impossible()
	}
	return hints(known, free, must, w.Count, at)
}

func nodesOf(devices map[string]Device) topology.Nodes {
	var nodes topology.Nodes
	for _, d := range devices {
		for _, id := range d.NUMA {
			nodes |= topology.NodesOf(int(id))
		}
	}
	return nodes
}

// has are the devices of a container, or of all of a pod if none is named.
func (l *Ledger) has(pod *corev1.Pod, container, resource string) []Device {
	found := map[string]bool{}
	var out []Device
	for _, s := range l.All() {
		if s.Pod != pod.UID || s.Resource != resource || container != "" && s.Container != container {
			continue
		}
		for _, d := range s.Devices {
			if !found[d.ID] {
				found[d.ID], out = true, append(out, d)
			}
		}
	}
	return out
}

// hints are the sets of nodes that have all devices of must, and with what is free enough.
func hints(known map[string]Device, free, must []Device, count int, at topology.Nodes) []topology.Hint {
	list, fewest := topology.Impossible(), at.Count()
	for nodes := range at.Subsets() {
		all := 0
		for _, d := range known {
			if d.near(nodes) {
				all++
			}
		}
		if all >= count {
			fewest = min(fewest, nodes.Count())
		}
		if has, ok := inside(must, nodes); ok && has+countNear(free, nodes) >= count {
			list = append(list, topology.Hint{Nodes: nodes})
		}
	}
	topology.Prefer(list, fewest)
	return list
}

// inside counts the devices that have a place, which must be there.
func inside(devices []Device, nodes topology.Nodes) (count int, ok bool) {
	for _, d := range devices {
		if len(d.NUMA) == 0 {
			continue
		}
		if !d.near(nodes) {
			return 0, false
		}
		count++
	}
	return count, true
}

func countNear(devices []Device, nodes topology.Nodes) int {
	count := 0
	for _, d := range devices {
		if d.near(nodes) {
			count++
		}
	}
	return count
}
