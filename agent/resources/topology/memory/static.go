package memory

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubectl/pkg/util/qos"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
)

// PolicyNone and PolicyStatic are the policies, by upstream's names: with the first containers have memory from any node.
const (
	PolicyNone   = "None"
	PolicyStatic = "Static"
)

// Static gives containers of Guaranteed pods memory of as few NUMA nodes as possible.
type Static struct {
	tables map[int]map[corev1.ResourceName]Table
}

// NewStatic keeps back what is reserved on each node, which must be as much as the Node keeps back in all. The errors are upstream's.
func NewStatic(totals Totals, reserved []kubeletv1beta1.MemoryReservation, ofNode corev1.ResourceList) (*Static, error) {
	if err := checkReserved(totals, reserved, ofNode); err != nil {
		return nil, err
	}
	p := &Static{tables: map[int]map[corev1.ResourceName]Table{}}
	some := uint64(0)
	for id, total := range totals {
		p.tables[id] = map[corev1.ResourceName]Table{}
		huge := uint64(0)
		for name, bytes := range total {
			p.tables[id][name] = newTable(bytes, reservedOn(reserved, id, name), 0)
			if name != corev1.ResourceMemory {
				huge += bytes
			}
		}
		kept := reservedOn(reserved, id, corev1.ResourceMemory)
		p.tables[id][corev1.ResourceMemory] = newTable(total[corev1.ResourceMemory], kept, huge)
		some += kept
	}
	if some == 0 {
		return nil, errors.New("[memorymanager] you should specify the system reserved memory")
	}
	return p, nil
}

func newTable(total, reserved, huge uint64) Table {
	left := total - min(total, reserved+huge)
	return Table{Total: total, SystemReserved: reserved, Allocatable: left, Free: left}
}

func reservedOn(list []kubeletv1beta1.MemoryReservation, node int, name corev1.ResourceName) uint64 {
	for _, r := range list {
		if q, ok := r.Limits[name]; ok && int(r.NumaNode) == node {
			return uint64(q.Value())
		}
	}
	return 0
}

// IsMemory: these resources are given from NUMA nodes.
func IsMemory(name corev1.ResourceName) bool {
	return name == corev1.ResourceMemory || strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

func checkReserved(totals Totals, reserved []kubeletv1beta1.MemoryReservation, ofNode corev1.ResourceList) error {
	sums := map[corev1.ResourceName]resource.Quantity{}
	for name := range ofNode {
		if IsMemory(name) {
			sums[name] = resource.Quantity{}
		}
	}
	for _, r := range reserved {
		if _, ok := totals[int(r.NumaNode)]; !ok {
			return fmt.Errorf("the reserved memory configuration references a NUMA node %d that does not exist on this machine", r.NumaNode)
		}
		for name, q := range r.Limits {
			q.Add(sums[name])
			sums[name] = q
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		sum, want := sums[name], ofNode[name]
		if sum.Cmp(want) != 0 {
			return fmt.Errorf("the total amount %q of type %q is not equal to the value %q determined by Node Allocatable feature",
				sum.String(), name, want.String())
		}
	}
	return nil
}

// Allocatable are blocks of all that containers can have.
func (p *Static) Allocatable() []Block {
	var out []Block
	for _, id := range slices.Sorted(maps.Keys(p.tables)) {
		for _, name := range slices.Sorted(maps.Keys(p.tables[id])) {
			if bytes := p.tables[id][name].Allocatable; bytes > 0 {
				out = append(out, Block{Nodes: []int{id}, Type: name, Size: bytes})
			}
		}
	}
	return out
}

type amounts map[corev1.ResourceName]uint64

var errAmount = errors.New("[memorymanager] failed to represent quantity as int64")

// wanted is what a container gets from nodes of its own. A pod with resources of its own gets nothing, as upstream without the feature
// PodLevelResourceManagers.
func wanted(pod *corev1.Pod, c *corev1.Container) (amounts, error) {
	out := amounts{}
	if qos.GetPodQOS(pod) != corev1.PodQOSGuaranteed || resourcehelper.IsPodLevelResourcesSet(pod) {
		return out, nil
	}
	for name, q := range c.Resources.Requests {
		if !IsMemory(name) {
			continue
		}
		bytes, ok := q.AsInt64()
		if !ok {
			return nil, errAmount
		}
		out[name] = uint64(bytes)
	}
	return out, nil
}

// Wants reports whether a container gets memory from nodes of its own.
func Wants(pod *corev1.Pod, c *corev1.Container) bool {
	want, err := wanted(pod, c)
	return err != nil || len(want) > 0
}

// wantedByPod is what all containers need that run at the same time, of the resources that main containers have.
func wantedByPod(pod *corev1.Pod) (amounts, error) {
	start, sidecars, run := amounts{}, amounts{}, amounts{}
	for c, ends := range topology.Containers(pod) {
		want, err := wanted(pod, c)
		if err != nil {
			return nil, err
		}
		for name, bytes := range want {
			switch {
			case ends:
				start[name] = max(start[name], sidecars[name]+bytes)
			case topology.IsSidecar(c):
				sidecars[name] += bytes
			default:
				run[name] += bytes
			}
		}
	}
	for name := range run {
		run[name] = max(start[name], run[name]+sidecars[name])
	}
	return run, nil
}

// Allocate gives a container what it wants, from the nodes of a hint if they have it, else from more. What it has it keeps.
func (p *Static) Allocate(s State, pod *corev1.Pod, c *corev1.Container, hint topology.Hint) error {
	want, err := wanted(pod, c)
	if _, has := s[pod.UID][c.Name]; err != nil || has || len(want) == 0 {
		return err
	}
	machine := p.machine(s)
	nodes, err := p.choose(s, machine, pod, c, want, hint)
	if err != nil {
		return err
	}
	if machine.violates(nodes) {
		return errors.New("[memorymanager] preferred hint violates NUMA node allocation")
	}
	var blocks []Block
	for _, name := range slices.Sorted(maps.Keys(want)) {
		b := Block{Nodes: nodes.IDs(), Type: name, Size: want[name]}
		s.shrink(pod, c.Name, b)
		blocks = append(blocks, b)
	}
	s.put(pod.UID, c.Name, blocks)
	return nil
}

func (p *Static) choose(
	s State, machine machine, pod *corev1.Pod, c *corev1.Container, want amounts, hint topology.Hint,
) (topology.Nodes, error) {
	if hint.Nodes != 0 && machine.satisfies(hint.Nodes, want) {
		return hint.Nodes, nil
	}
	possible := p.possible(s, machine, pod, c.Name, want)
	if hint.Nodes == 0 && len(possible) == 0 {
		return 0, errors.New("[memorymanager] failed to get the default NUMA affinity, no NUMA nodes with enough memory is available")
	}
	possible = slices.DeleteFunc(possible, func(h topology.Hint) bool { return h.Nodes&hint.Nodes != hint.Nodes })
	if len(possible) == 0 {
		return 0, errors.New("[memorymanager] failed to find NUMA nodes to extend the current topology hint")
	}
	best := topology.Best(possible)
	switch {
	case best.Preferred || !hint.Preferred:
		return best.Nodes, nil
	case hint.Nodes == 0:
		return 0, errors.New("[memorymanager] failed to find the default preferred hint")
	default:
		return 0, errors.New("[memorymanager] failed to find the extended preferred hint")
	}
}
