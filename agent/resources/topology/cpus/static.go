package cpus

import (
	"errors"
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"
	"k8s.io/kubectl/pkg/util/qos"
	"k8s.io/utils/cpuset"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
)

// PolicyNone and PolicyStatic are the policies, by upstream's names: with the first no container has CPUs for itself.
const (
	PolicyNone   = "none"
	PolicyStatic = "static"
)

// Static gives containers of Guaranteed pods that ask for whole CPUs these for themselves.
type Static struct {
	Topology Topology
	Options  Options
	// Reserved CPUs are nobody's.
	Reserved cpuset.CPUSet
}

// ErrNoReservation: all CPUs could become somebody's.
var ErrNoReservation = errors.New("[cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero")

// NewStatic reserves the named CPUs, or else as many as amount says, of the first cores. The errors are upstream's.
func NewStatic(machine Topology, options Options, named cpuset.CPUSet, amount resource.Quantity) (*Static, error) {
	if amount.IsZero() {
		return nil, ErrNoReservation
	}
	count := int(math.Ceil(float64(amount.MilliValue()) / 1000))
	reserved := named
	if reserved.IsEmpty() {
		reserved, _ = Take(machine, options, machine.All(), count) // too few are told of below
	}
	if reserved.Size() != count {
		return nil, fmt.Errorf("[cpumanager] unable to reserve the required amount of CPUs (size of %s did not equal %d)", reserved, count)
	}
	return &Static{Topology: machine, Options: options, Reserved: reserved}, nil
}

// Allocatable are the CPUs that containers can have for themselves.
func (p *Static) Allocatable() cpuset.CPUSet { return p.Topology.All().Difference(p.Reserved) }

// all are those that are in a state.
func (p *Static) all() cpuset.CPUSet {
	if p.Options.StrictReservation {
		return p.Allocatable()
	}
	return p.Topology.All()
}

// New is the state in which nobody has any.
func (p *Static) New() *State { return &State{Shared: p.all()} }

// Check says why a state, which an earlier agent has left, does not fit to the machine and the settings. The errors are upstream's, which
// refuses its own state if with a strict reservation all CPUs are somebody's.
func (p *Static) Check(s *State) error {
	if s.Shared.IsEmpty() && !p.Options.StrictReservation {
		return errors.New("default cpuset cannot be empty")
	}
	kept := p.Reserved.Intersection(s.Shared)
	switch {
	case p.Options.StrictReservation && !kept.IsEmpty():
		return fmt.Errorf("some of strictly reserved cpus: %q are present in defaultCpuSet: %q", kept, s.Shared)
	case !p.Options.StrictReservation && !kept.Equals(p.Reserved):
		return fmt.Errorf("not all reserved cpus: %q are present in defaultCpuSet: %q", p.Reserved, s.Shared)
	}
	for pod, containers := range s.Exclusive {
		for name, set := range containers {
			if !set.Intersection(s.Shared).IsEmpty() {
				return fmt.Errorf("pod: %s, container: %s cpuset: %q overlaps with default cpuset %q", pod, name, set, s.Shared)
			}
		}
	}
	if known := s.Shared.Union(s.Assigned()); !known.Equals(p.all()) {
		return fmt.Errorf("current set of available CPUs %q doesn't match with CPUs in state %q", p.all(), known)
	}
	return nil
}

// Wanted is how many CPUs a container gets for itself. A pod with resources of its own gets none, as upstream without the feature
// PodLevelResourceManagers.
func Wanted(pod *corev1.Pod, c *corev1.Container) int {
	amount := c.Resources.Requests[corev1.ResourceCPU]
	if qos.GetPodQOS(pod) != corev1.PodQOSGuaranteed || resourcehelper.IsPodLevelResourcesSet(pod) ||
		amount.Value()*1000 != amount.MilliValue() {
		return 0
	}
	return int(amount.Value())
}

// wantedByPod is how many all containers need that run at the same time.
func wantedByPod(pod *corev1.Pod) int {
	start, sidecars := 0, 0
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if topology.IsSidecar(c) {
			sidecars += Wanted(pod, c)
		} else {
			start = max(start, sidecars+Wanted(pod, c))
		}
	}
	run := sidecars
	for i := range pod.Spec.Containers {
		run += Wanted(pod, &pod.Spec.Containers[i])
	}
	return max(start, run)
}

// Allocate gives a container what it wants, from these NUMA nodes as far as they have it; none: from any. What it has it keeps.
func (p *Static) Allocate(s *State, pod *corev1.Pod, c *corev1.Container, near topology.Nodes) error {
	want := Wanted(pod, c)
	if _, has := s.Of(pod.UID, c.Name); has || want == 0 {
		return nil
	}
	free := s.Shared.Difference(p.Reserved)
	if p.Options.FullPCPUsOnly {
		free = p.Topology.wholeCores(free)
		if err := p.checkCores(want, free.Size()); err != nil {
			return err
		}
	}
	chosen, err := p.choose(free.Union(s.handedOn(pod, c.Name)), want, near)
	if err != nil {
		return err
	}
	s.give(pod.UID, c.Name, chosen)
	return nil
}

// choose takes CPUs near to the nodes first, and then others.
func (p *Static) choose(free cpuset.CPUSet, want int, near topology.Nodes) (cpuset.CPUSet, error) {
	aligned := cpuset.New()
	if near != 0 {
		aligned = free.Intersection(p.near(near))
	}
	first, err := Take(p.Topology, p.Options, aligned, min(want, aligned.Size()))
	if err != nil {
		return first, err
	}
	rest, err := Take(p.Topology, p.Options, free.Difference(first), want-first.Size())
	return first.Union(rest), err
}

func (p *Static) near(nodes topology.Nodes) cpuset.CPUSet {
	if !p.Options.AlignBySocket {
		return p.Topology.In(nodes)
	}
	sockets := p.Topology.sockets(nodes)
	return p.Topology.where(func(c CPU) bool { return sockets[c.Socket] })
}

// handedOn are the CPUs of the pod's earlier init containers which the container may have: those have ended by the time it starts. What a
// sidecar or an earlier main container has stays theirs.
func (s *State) handedOn(pod *corev1.Pod, container string) cpuset.CPUSet {
	free := cpuset.New()
	for c, ends := range topology.Containers(pod) {
		if c.Name == container {
			break
		}
		if set, _ := s.Of(pod.UID, c.Name); ends {
			free = free.Union(set)
		} else {
			free = free.Difference(set)
		}
	}
	return free
}

// AlignmentError is of a container that would not have cores as a whole.
type AlignmentError struct {
	Wanted, Threads int
	// Available are the CPUs of free cores; -1: there is no such number, the container asks for parts of a core.
	Available int
}

func (e *AlignmentError) Error() string {
	if e.Available < 0 {
		return fmt.Sprintf("SMT Alignment Error: requested %d cpus not multiple cpus per core = %d", e.Wanted, e.Threads)
	}
	return fmt.Sprintf("SMT Alignment Error: not enough free physical CPUs: available physical CPUs = %d, requested CPUs = %d, CPUs per core = %d",
		e.Available, e.Wanted, e.Threads)
}

// Reason is upstream's.
func (e *AlignmentError) Reason() string { return "SMTAlignmentError" }

func (p *Static) checkCores(want, free int) error {
	threads := p.Topology.threads()
	switch {
	case want%threads != 0:
		return &AlignmentError{Wanted: want, Threads: threads, Available: -1}
	case want > free:
		return &AlignmentError{Wanted: want, Threads: threads, Available: free}
	default:
		return nil
	}
}

// Hints say from which NUMA nodes a container can have what it wants.
func (p *Static) Hints(s *State, pod *corev1.Pod, c *corev1.Container) topology.Hints {
	want := Wanted(pod, c)
	if want == 0 {
		return nil
	}
	if has, ok := s.Of(pod.UID, c.Name); ok {
		if has.Size() != want {
			return topology.Hints{string(corev1.ResourceCPU): topology.Impossible()}
		}
		return p.hints(has, cpuset.New(), want)
	}
	return p.hints(s.Shared.Difference(p.Reserved), s.handedOn(pod, c.Name), want)
}

// PodHints say from which NUMA nodes all containers of a pod can have what they want.
func (p *Static) PodHints(s *State, pod *corev1.Pod) topology.Hints {
	want := wantedByPod(pod)
	if want == 0 {
		return nil
	}
	for c := range topology.Containers(pod) {
		if has, ok := s.Of(pod.UID, c.Name); ok && has.Size() != Wanted(pod, c) {
			return topology.Hints{string(corev1.ResourceCPU): topology.Impossible()}
		}
	}
	has := s.ofPod(pod.UID)
	if has.Size() == want {
		return p.hints(has, cpuset.New(), want)
	}
	return p.hints(s.Shared.Difference(p.Reserved), has, want)
}

// hints are the sets of nodes that have all of must, and with what is free of theirs enough.
func (p *Static) hints(free, must cpuset.CPUSet, want int) topology.Hints {
	list, all := topology.Impossible(), p.Topology.Nodes()
	fewest := all.Count()
	for nodes := range all.Subsets() {
		inside := p.Topology.In(nodes)
		if inside.Size() >= want {
			fewest = min(fewest, nodes.Count())
		}
		if must.IsSubsetOf(inside) && must.Size()+free.Intersection(inside).Size() >= want {
			list = append(list, topology.Hint{Nodes: nodes})
		}
	}
	topology.Prefer(list, fewest)
	if p.Options.AlignBySocket {
		p.preferSockets(list, fewest)
	}
	return topology.Hints{string(corev1.ResourceCPU): list}
}

// preferSockets also marks hints whose nodes are on no more sockets than are needed.
func (p *Static) preferSockets(list []topology.Hint, fewest int) {
	perSocket := len(p.Topology.parts(ofNode)) / len(p.Topology.parts(ofSocket))
	if perSocket == 0 {
		return
	}
	for i, h := range list {
		if len(p.Topology.sockets(h.Nodes)) == (fewest+perSocket-1)/perSocket {
			list[i].Preferred = true
		}
	}
}

// For are the CPUs on which a container runs. If no CPU is left to share, those that are kept back are.
func (p *Static) For(s *State, pod types.UID, container string) cpuset.CPUSet {
	if set, ok := s.Of(pod, container); ok {
		return set
	}
	if s.Shared.IsEmpty() {
		return p.Reserved
	}
	return s.Shared
}

// PerNode is how many CPUs of each NUMA node containers have for themselves.
func (p *Static) PerNode(s *State) map[int]int { return p.Topology.only(s.Assigned()).parts(ofNode) }

// Has reports whether a pod has CPUs for itself.
func (s *State) Has(pod types.UID) bool { return len(s.Exclusive[pod]) > 0 }
