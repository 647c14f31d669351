package memory

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
)

// Table is how much a NUMA node has of a resource, in bytes, with the names of a kubelet's file.
type Table struct {
	Total          uint64 `json:"total"`
	SystemReserved uint64 `json:"systemReserved"`
	Allocatable    uint64 `json:"allocatable"`
	Reserved       uint64 `json:"reserved"`
	Free           uint64 `json:"free"`
}

// node is one of the machine, with what it has given.
type node struct {
	Assignments int                            `json:"numberOfAssignments"`
	Memory      map[corev1.ResourceName]*Table `json:"memoryMap"`
	// Cells are the nodes with which it gives memory: itself, or a group that it is in.
	Cells []int `json:"cells"`
}

type machine map[int]*node

// machine is what is left of each node. Of a group only the sum has a meaning.
func (p *Static) machine(s State) machine {
	m := machine{}
	for id, tables := range p.tables {
		m[id] = &node{Memory: map[corev1.ResourceName]*Table{}, Cells: []int{id}}
		for name, table := range tables {
			m[id].Memory[name] = &table
		}
	}
	for _, b := range s.all() {
		m.give(b)
	}
	return m
}

func (m machine) give(b Block) {
	left := b.Size
	for _, id := range b.Nodes {
		n := m[id]
		if n == nil {
			continue
		}
		n.Assignments, n.Cells = n.Assignments+1, b.Nodes
		if table := n.Memory[b.Type]; table != nil {
			part := min(left, table.Free)
			table.Free, table.Reserved, left = table.Free-part, table.Reserved+part, left-part
		}
	}
}

func (m machine) sum(nodes topology.Nodes, name corev1.ResourceName, of func(*Table) uint64) uint64 {
	sum := uint64(0)
	for _, id := range nodes.IDs() {
		if n := m[id]; n != nil && n.Memory[name] != nil {
			sum += of(n.Memory[name])
		}
	}
	return sum
}

func free(t *Table) uint64        { return t.Free }
func allocatable(t *Table) uint64 { return t.Allocatable }

// satisfies: the nodes have what is wanted, and may give it.
func (m machine) satisfies(nodes topology.Nodes, want amounts) bool {
	for name, bytes := range want {
		if m.sum(nodes, name, free) < bytes {
			return false
		}
	}
	return nodes.Count() > 1 || !m.grouped(nodes)
}

// grouped: it is one node, which is in a group and gives nothing by itself.
func (m machine) grouped(nodes topology.Nodes) bool {
	return nodes.Count() == 1 && len(m[nodes.IDs()[0]].Cells) > 1
}

// violates: a node of these would be in two groups, or in one and by itself
// (https://kubernetes.io/blog/2021/08/11/kubernetes-1-22-feature-memory-manager-moves-to-beta/#single-vs-cross-numa-node-allocation).
func (m machine) violates(nodes topology.Nodes) bool {
	if nodes.Count() == 1 {
		return m.grouped(nodes)
	}
	return slices.ContainsFunc(nodes.IDs(), func(id int) bool {
		return m[id].Assignments > 0 && topology.NodesOf(m[id].Cells...) != nodes
	})
}

// possible are the sets of nodes that can give a container, or a pod if no container is named, what it wants.
func (p *Static) possible(s State, m machine, pod *corev1.Pod, container string, want amounts) []topology.Hint {
	all := topology.NodesOf()
	for id := range m {
		all |= topology.NodesOf(id)
	}
	fewest, list := all.Count(), []topology.Hint(nil)
	for nodes := range all.Subsets() {
		enough, left := true, true
		for name, bytes := range want {
			enough = enough && m.sum(nodes, name, allocatable) >= bytes
			left = left && m.sum(nodes, name, free)+s.handedOn(pod, container, nodes, name) >= bytes
		}
		if enough {
			fewest = min(fewest, nodes.Count())
		}
		if enough && left && !m.violates(nodes) {
			list = append(list, topology.Hint{Nodes: nodes})
		}
	}
	topology.Prefer(list, fewest)
	return list
}

// Hints say from which NUMA nodes a container can have what it wants.
func (p *Static) Hints(s State, pod *corev1.Pod, c *corev1.Container) topology.Hints {
	want, err := wanted(pod, c)
	if err != nil || len(want) == 0 {
		return nil
	}
	if has, ok := s[pod.UID][c.Name]; ok {
		return again(has, want)
	}
	return p.hints(s, pod, c.Name, want)
}

// PodHints say from which NUMA nodes all containers of a pod can have what they want.
func (p *Static) PodHints(s State, pod *corev1.Pod) topology.Hints {
	want, err := wantedByPod(pod)
	if err != nil || len(want) == 0 {
		return nil
	}
	for c := range topology.Containers(pod) {
		if has, ok := s[pod.UID][c.Name]; ok {
			return again(has, want)
		}
	}
	first := ""
	for c := range topology.Containers(pod) {
		first = c.Name
		break
	}
	return p.hints(s, pod, first, want)
}

// hints has nothing if nothing is possible: then Allocate says why.
func (p *Static) hints(s State, pod *corev1.Pod, container string, want amounts) topology.Hints {
	out := topology.Hints{}
	if list := p.possible(s, p.machine(s), pod, container, want); list != nil {
		for name := range want {
			out[string(name)] = list
		}
	}
	return out
}

// again are the hints for what somebody has already; none if it is something else than what is wanted.
func again(has []Block, want amounts) topology.Hints {
	out := topology.Hints{}
	for _, b := range has {
		if bytes, ok := want[b.Type]; !ok || bytes != b.Size || len(has) != len(want) {
			return nil
		}
		out[string(b.Type)] = []topology.Hint{{Nodes: topology.NodesOf(b.Nodes...), Preferred: true}}
	}
	return out
}
