package pinning

import (
	"cmp"
	"fmt"
	"io/fs"
	"time"

	corev1 "k8s.io/api/core/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/cpuset"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
	"github.com/setpoint-io/setpoint/agent/resources/topology/cpus"
	"github.com/setpoint-io/setpoint/agent/resources/topology/memory"
)

// Settings are what a KubeletConfiguration says. The zero Settings pin nothing.
type Settings struct {
	// CPUPolicy and MemoryPolicy are none unless they say static.
	CPUPolicy  string
	CPUOptions cpus.Options
	// ReconcileEvery is between two looks at the CPUs of running containers; 0 is upstream's.
	ReconcileEvery time.Duration
	// ReservedCPUs are the system's; none: as many as are reserved, of the first cores.
	ReservedCPUs   cpuset.CPUSet
	MemoryPolicy   string
	ReservedMemory []kubeletv1beta1.MemoryReservation
	Topology       topology.Policy
	Scope          topology.Scope
	Options        topology.Options
}

// reconcileEvery is upstream's default.
const reconcileEvery = 10 * time.Second

// Active reports whether any policy is set.
func (s *Settings) Active() bool { return s.cpus() || s.memory() || s.aligned() }

func (s *Settings) cpus() bool    { return s.CPUPolicy == cpus.PolicyStatic }
func (s *Settings) memory() bool  { return s.MemoryPolicy == memory.PolicyStatic }
func (s *Settings) aligned() bool { return cmp.Or(s.Topology, topology.None) != topology.None }

// machine is what the policies have to know.
type machine struct {
	cpus   cpus.Topology
	memory memory.Totals
	nodes  topology.Manager
}

// read learns the machine from /sys. bytes is its memory.
func (s *Settings) read(sys fs.FS, bytes int64) (m machine, err error) {
	if m.cpus, err = cpus.Read(sys); err != nil {
		return m, err
	}
	if m.memory, err = memory.Read(sys, uint64(max(0, bytes))); err != nil {
		return m, err
	}
	m.nodes = topology.Manager{Policy: cmp.Or(s.Topology, topology.None), Scope: s.Scope, Options: s.Options, Nodes: m.memory.Nodes()}
	if m.nodes.Distances, err = topology.ReadDistances(sys); err != nil {
		return m, err
	}
	return m, m.nodes.Check()
}

// policies are those that are set, for this machine; nil: none.
func (s *Settings) policies(m machine, reserved corev1.ResourceList) (c *cpus.Static, r *memory.Static, err error) {
	if !s.ReservedCPUs.IsSubsetOf(m.cpus.All()) {
		return nil, nil, fmt.Errorf("reserved-cpus: %s is not a subset of online-cpus: %s", s.ReservedCPUs, m.cpus.All())
	}
	if s.cpus() {
		if err := s.CPUOptions.Check(m.cpus, m.nodes.Policy); err != nil {
			return nil, nil, fmt.Errorf("new static policy error: %w", err)
		}
		if c, err = cpus.NewStatic(m.cpus, s.CPUOptions, s.ReservedCPUs, *reserved.Cpu()); err != nil {
			return nil, nil, fmt.Errorf("new static policy error: %w", err)
		}
	}
	if s.memory() {
		r, err = memory.NewStatic(m.memory, s.ReservedMemory, reserved)
	}
	return c, r, err
}
