package kubeletconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/cpuset"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
	"github.com/setpoint-io/setpoint/agent/resources/topology/cpus"
	"github.com/setpoint-io/setpoint/agent/resources/topology/memory"
)

// cpuReconcileDefault is upstream's.
const cpuReconcileDefault = 10 * time.Second

// readPinning reads the policies of CPUs, memory and NUMA nodes. What needs the machine is checked when the agent starts.
func readPinning(c *kubeletv1beta1.KubeletConfiguration, s *Settings) error {
	p := &s.Pinning
	p.CPUPolicy, p.MemoryPolicy = cmp.Or(c.CPUManagerPolicy, cpus.PolicyNone), cmp.Or(c.MemoryManagerPolicy, memory.PolicyNone)
	p.ReconcileEvery, p.ReservedMemory = c.CPUManagerReconcilePeriod.Duration, c.ReservedMemory
	if policies := []string{cpus.PolicyNone, cpus.PolicyStatic}; !slices.Contains(policies, p.CPUPolicy) {
		return field.NotSupported(field.NewPath("cpuManagerPolicy"), p.CPUPolicy, policies)
	}
	if policies := []string{memory.PolicyNone, memory.PolicyStatic}; !slices.Contains(policies, p.MemoryPolicy) {
		return field.NotSupported(field.NewPath("memoryManagerPolicy"), p.MemoryPolicy, policies)
	}
	if p.ReconcileEvery < 0 {
		return field.Invalid(field.NewPath("cpuManagerReconcilePeriod"), p.ReconcileEvery.String(), "must not be negative")
	}
	for _, part := range []func(*kubeletv1beta1.KubeletConfiguration, *Settings) error{
		readCPUOptions, readReservedCPUs, readReservedMemory, readTopology,
	} {
		if err := part(c, s); err != nil {
			return err
		}
	}
	return nil
}

func readCPUOptions(c *kubeletv1beta1.KubeletConfiguration, s *Settings) (err error) {
	if s.Pinning.CPUPolicy == cpus.PolicyNone && len(c.CPUManagerPolicyOptions) > 0 {
		return fmt.Errorf("cpuManagerPolicyOptions: None policy: received unsupported options=%v", c.CPUManagerPolicyOptions)
	}
	if s.Pinning.CPUOptions, err = cpus.ParseOptions(c.CPUManagerPolicyOptions); err != nil {
		return fmt.Errorf("cpuManagerPolicyOptions: %w", err)
	}
	return nil
}

// readReservedCPUs: CPUs that are named are in place of what else is reserved of them, as upstream.
func readReservedCPUs(c *kubeletv1beta1.KubeletConfiguration, s *Settings) (err error) {
	if s.Pinning.ReservedCPUs, err = cpuset.Parse(c.ReservedSystemCPUs); err != nil {
		return fmt.Errorf("invalid configuration: unable to parse reservedSystemCPUs (--reserved-cpus) %v, error: %w", c.ReservedSystemCPUs, err)
	}
	if n := s.Pinning.ReservedCPUs.Size(); n > 0 {
		if s.Reserved == nil {
			s.Reserved = corev1.ResourceList{}
		}
		s.Reserved[corev1.ResourceCPU] = resource.MustParse(strconv.Itoa(n))
	}
	if s.Pinning.CPUPolicy == cpus.PolicyStatic && s.Reserved.Cpu().IsZero() {
		return fmt.Errorf("cpuManagerPolicy: %w", cpus.ErrNoReservation)
	}
	return nil
}

// readReservedMemory has upstream's messages.
func readReservedMemory(c *kubeletv1beta1.KubeletConfiguration, _ *Settings) error {
	type key struct {
		node int32
		name corev1.ResourceName
	}
	seen := map[key]bool{}
	for _, r := range c.ReservedMemory {
		for name, q := range r.Limits {
			switch {
			case !memory.IsMemory(name):
				return fmt.Errorf("invalid configuration: the limit type %q for NUMA node %d is not supported, only %v is accepted", name, r.NumaNode,
					[]corev1.ResourceName{corev1.ResourceMemory, corev1.ResourceHugePagesPrefix + "<HugePageSize>"})
			case q.IsZero():
				return fmt.Errorf("invalid configuration: reserved memory may not be zero for NUMA node %d and resource %q", r.NumaNode, name)
			case seen[key{r.NumaNode, name}]:
				return fmt.Errorf("invalid configuration: the reserved memory has a duplicate value for NUMA node %d and resource %q", r.NumaNode, name)
			}
			seen[key{r.NumaNode, name}] = true
		}
	}
	return nil
}

func readTopology(c *kubeletv1beta1.KubeletConfiguration, s *Settings) (err error) {
	p := &s.Pinning
	p.Topology = topology.Policy(cmp.Or(c.TopologyManagerPolicy, string(topology.None)))
	p.Scope = topology.Scope(cmp.Or(c.TopologyManagerScope, string(topology.OfContainer)))
	if !slices.Contains(topology.Policies, p.Topology) {
		return fmt.Errorf("invalid configuration: topologyManagerPolicy (--topology-manager-policy) %q must be one of: %q", p.Topology, topology.Policies)
	}
	if !slices.Contains(topology.Scopes, p.Scope) {
		return fmt.Errorf("invalid configuration: topologyManagerScope (--topology-manager-scope) %q must be one of: %q, or %q",
			p.Scope, topology.OfContainer, topology.OfPod)
	}
	if p.Options, err = topology.ParseOptions(c.TopologyManagerPolicyOptions); err != nil {
		return fmt.Errorf("topologyManagerPolicyOptions: %w", err)
	}
	return nil
}

// showPinning fills in what the policies are if the file does not say.
func (s *Settings) showPinning(c *kubeletv1beta1.KubeletConfiguration) {
	c.CPUManagerPolicy = cmp.Or(s.Pinning.CPUPolicy, cpus.PolicyNone)
	c.CPUManagerReconcilePeriod.Duration = cmp.Or(s.Pinning.ReconcileEvery, cpuReconcileDefault)
	c.MemoryManagerPolicy = cmp.Or(s.Pinning.MemoryPolicy, memory.PolicyNone)
	c.TopologyManagerPolicy = string(cmp.Or(s.Pinning.Topology, topology.None))
	c.TopologyManagerScope = string(cmp.Or(s.Pinning.Scope, topology.OfContainer))
}
