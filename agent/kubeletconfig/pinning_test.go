package kubeletconfig

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
)

func TestPinningThatIsRefused(t *testing.T) {
	static := "cpuManagerPolicy: static\nkubeReserved: {cpu: 500m}\n"
	for _, c := range []struct{ yaml, want string }{
		{"cpuManagerPolicy: dynamic", `cpuManagerPolicy: Unsupported value: "dynamic": supported values: "none", "static"`},
		{"cpuManagerPolicy: static", "cpuManagerPolicy: [cpumanager] the static policy requires systemreserved.cpu + kubereserved.cpu to be greater than zero"},
		{"cpuManagerPolicyOptions: {full-pcpus-only: 'true'}", "cpuManagerPolicyOptions: None policy: received unsupported options=map[full-pcpus-only:true]"},
		{static + "cpuManagerPolicyOptions: {x: 'true'}", `cpuManagerPolicyOptions: unknown CPU Manager Policy option: "x"`},
		{"cpuManagerReconcilePeriod: -1s", "cpuManagerReconcilePeriod: Invalid value"},
		{"reservedSystemCPUs: 1-x", "invalid configuration: unable to parse reservedSystemCPUs (--reserved-cpus) 1-x, error: "},
		{"memoryManagerPolicy: BestEffort", `memoryManagerPolicy: Unsupported value: "BestEffort": supported values: "None", "Static"`},
		{"reservedMemory: [{numaNode: 0, limits: {cpu: 1}}]",
			`invalid configuration: the limit type "cpu" for NUMA node 0 is not supported, only [memory hugepages-<HugePageSize>] is accepted`},
		{"reservedMemory: [{numaNode: 1, limits: {memory: 0}}]", `invalid configuration: reserved memory may not be zero for NUMA node 1 and resource "memory"`},
		{"reservedMemory: [{numaNode: 1, limits: {memory: 1Gi}}, {numaNode: 1, limits: {memory: 1Gi}}]",
			`invalid configuration: the reserved memory has a duplicate value for NUMA node 1 and resource "memory"`},
		{"topologyManagerPolicy: strict",
			`invalid configuration: topologyManagerPolicy (--topology-manager-policy) "strict" must be one of: ["none" "best-effort" "restricted" "single-numa-node"]`},
		{"topologyManagerScope: node", `invalid configuration: topologyManagerScope (--topology-manager-scope) "node" must be one of: "container", or "pod"`},
		{"topologyManagerPolicyOptions: {x: y}", `topologyManagerPolicyOptions: unknown Topology Manager Policy option: "x"`},
	} {
		if _, err := Parse([]byte(head + c.yaml)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.yaml, err, c.want)
		}
	}
}

func TestPinning(t *testing.T) {
	s, err := Parse([]byte(head + `
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true", strict-cpu-reservation: "false"}
cpuManagerReconcilePeriod: 3s
reservedSystemCPUs: 0-1,4
kubeReserved: {cpu: 500m, memory: 1Gi}
memoryManagerPolicy: Static
reservedMemory: [{numaNode: 0, limits: {memory: 1124Mi}}]
topologyManagerPolicy: restricted
topologyManagerScope: pod
topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}
`))
	if err != nil {
		t.Fatal(err)
	}
	p := s.Pinning
	if !p.Active() || !p.CPUOptions.FullPCPUsOnly || p.CPUOptions.StrictReservation || p.ReconcileEvery != 3*time.Second || p.ReservedCPUs.String() != "0-1,4" ||
		p.Topology != topology.Restricted || p.Scope != topology.OfPod || !p.Options.PreferClosest || len(p.ReservedMemory) != 1 {
		t.Errorf("%+v", p)
	}
	kept := s.Reservation(corev1.ResourceList{})
	if kept.Cpu().String() != "3" || kept.Memory().String() != "1124Mi" { // 100Mi are evictionHard's default
		t.Errorf("%v of CPU and %v of memory are kept back", kept.Cpu(), kept.Memory())
	}
	c := s.Effective()
	if c.CPUManagerPolicy != "static" || c.MemoryManagerPolicy != "Static" || c.TopologyManagerScope != "pod" || c.CPUManagerPolicyOptions["full-pcpus-only"] != "true" {
		t.Errorf("%+v", c)
	}
	plain := Default()
	c = plain.Effective()
	if plain.Pinning.Active() || c.CPUManagerPolicy != "none" || c.CPUManagerReconcilePeriod.Duration != 10*time.Second ||
		c.MemoryManagerPolicy != "None" || c.TopologyManagerPolicy != "none" || c.TopologyManagerScope != "container" {
		t.Errorf("%+v", c)
	}
}
