package topology

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-logr/logr"
	"github.com/google/cadvisor/lib/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	cpustate "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	cputopology "k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	memorystate "k8s.io/kubernetes/pkg/kubelet/cm/memorymanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager/bitmask"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/utils/cpuset"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
	"github.com/setpoint-io/setpoint/agent/resources/topology/cpus"
	"github.com/setpoint-io/setpoint/agent/resources/topology/memory"
)

var machines = flag.Int("machines", 300, "how many machines the kubelet's managers are compared on")

var quiet = logr.Discard()

// theirs is a hint of ours in upstream's form.
func theirs(h topology.Hint) topologymanager.TopologyHint {
	out := topologymanager.TopologyHint{Preferred: h.Preferred}
	if h.Nodes != 0 {
		out.NUMANodeAffinity, _ = bitmask.NewBitMask(h.Nodes.IDs()...)
	}
	return out
}

func ours(h topologymanager.TopologyHint) topology.Hint {
	out := topology.Hint{Preferred: h.Preferred}
	if h.NUMANodeAffinity != nil {
		out.Nodes = topology.NodesOf(h.NUMANodeAffinity.GetBits()...)
	}
	return out
}

func oursAll(hints map[string][]topologymanager.TopologyHint) string {
	out := topology.Hints{}
	for name, list := range hints {
		if list != nil {
			out[name] = topology.Impossible()
		}
		for _, h := range list {
			out[name] = append(out[name], ours(h))
		}
	}
	return fmt.Sprint(out)
}

func printed(hints topology.Hints) string {
	out := topology.Hints{}
	maps.Copy(out, hints)
	return fmt.Sprint(out)
}

// affinity is what a topology manager has decided.
type affinity struct {
	topologymanager.Manager
	hint   topology.Hint
	policy topologymanager.Policy
}

func (a *affinity) GetAffinity(klog.Logger, string, string) topologymanager.TopologyHint {
	return theirs(a.hint)
}
func (a *affinity) GetPolicy() topologymanager.Policy { return a.policy }

func chance(r *rand.Rand, percent int) bool { return r.IntN(100) < percent }

// TestTopologyPolicies merges hints by chance.
func TestTopologyPolicies(t *testing.T) {
	for seed := range *machines * 10 {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		count := 1 + r.IntN(5)
		info := &topologymanager.NUMAInfo{NUMADistances: topologymanager.NUMADistances{}}
		m := &topology.Manager{Distances: map[int]map[int]int{}, Options: topology.Options{PreferClosest: chance(r, 50)}}
		for node := range count {
			info.Nodes, m.Nodes, m.Distances[node] = append(info.Nodes, node), m.Nodes|topology.NodesOf(node), map[int]int{}
			for other := range count {
				d := 10 + 10*r.IntN(3)
				info.NUMADistances[node], m.Distances[node][other] = append(info.NUMADistances[node], uint64(d)), d
			}
		}
		var all []topology.Hints
		var their []map[string][]topologymanager.TopologyHint
		for range r.IntN(3) {
			hints := topology.Hints{}
			for range r.IntN(3) {
				hints[fmt.Sprint("r", len(hints))] = hintsByChance(r, m.Nodes)
			}
			all, their = append(all, hints), append(their, theirsAll(hints))
		}
		opts := topologymanager.PolicyOptions{PreferClosestNUMA: m.Options.PreferClosest, MaxAllowableNUMANodes: 8}
		for policy, upstream := range map[topology.Policy]topologymanager.Policy{
			topology.BestEffort: topologymanager.NewBestEffortPolicy(info, opts), topology.Restricted: topologymanager.NewRestrictedPolicy(info, opts),
			topology.SingleNUMANode: topologymanager.NewSingleNumaNodePolicy(info, opts),
		} {
			m.Policy = policy
			got, admit := m.Merge(all)
			want, wantAdmit := upstream.Merge(quiet, their)
			if got != ours(want) || admit != wantAdmit {
				t.Fatalf("seed %d, %s: %v %v, upstream %v %v, for %v", seed, policy, got, admit, ours(want), wantAdmit, all)
			}
		}
	}
}

func hintsByChance(r *rand.Rand, nodes topology.Nodes) []topology.Hint {
	if chance(r, 15) {
		return nil
	}
	list := topology.Impossible()
	for set := range nodes.Subsets() {
		if chance(r, 40) {
			list = append(list, topology.Hint{Nodes: set, Preferred: chance(r, 40)})
		}
	}
	return list
}

func theirsAll(hints topology.Hints) map[string][]topologymanager.TopologyHint {
	out := map[string][]topologymanager.TopologyHint{}
	for name, list := range hints {
		out[name] = nil
		if list != nil {
			out[name] = []topologymanager.TopologyHint{}
		}
		for _, h := range list {
			out[name] = append(out[name], theirs(h))
		}
	}
	return out
}

// machineByChance has as many CPUs in each of its parts.
func machineByChance(r *rand.Rand) (cpus.Topology, *cputopology.CPUTopology) {
	sockets, nodes := 1+r.IntN(3), 1+r.IntN(3) // NUMA nodes in a socket, or the other way
	inner, cores, threads := 1+r.IntN(2), 1+r.IntN(3), 1+r.IntN(2)
	perNode, allCores := chance(r, 50), 0
	topo := cpus.Topology{}
	up := &cputopology.CPUTopology{CPUDetails: cputopology.CPUDetails{}, NumSockets: sockets * nodes, NumNUMANodes: sockets}
	if !perNode {
		up.NumSockets, up.NumNUMANodes = sockets, sockets*nodes
	}
	interleaved := chance(r, 50)
	total := sockets * nodes * inner * cores
	for outer := range sockets {
		for middle := range nodes {
			for cache := range inner {
				for range cores {
					for thread := range threads {
						id := allCores*threads + thread
						if interleaved {
							id = allCores + thread*total
						}
						core := allCores * threads
						if interleaved {
							core = allCores
						}
						first := (outer*nodes+middle)*inner + cache
						c := cpus.CPU{Node: outer, Socket: outer*nodes + middle, Core: core, Cache: first}
						if !perNode {
							c.Node, c.Socket = c.Socket, c.Node
						}
						topo[id] = c
						up.CPUDetails[id] = cputopology.CPUInfo{NUMANodeID: c.Node, SocketID: c.Socket, CoreID: c.Core, UncoreCacheID: c.Cache}
					}
					allCores++
				}
			}
		}
	}
	up.NumCPUs, up.NumCores, up.NumUncoreCache = len(topo), allCores, sockets*nodes*inner
	return topo, up
}

func podByChance(r *rand.Rand, uid string, most int) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: uid, UID: types.UID(uid)}}
	always := corev1.ContainerRestartPolicyAlways
	container := func(name string) corev1.Container {
		cpu := resource.MustParse(fmt.Sprint(1 + r.IntN(most)))
		if chance(r, 15) {
			cpu = resource.MustParse("500m")
		}
		list := corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: *resource.NewQuantity(int64(1+r.IntN(12))<<30, resource.BinarySI)}
		c := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: list, Limits: list.DeepCopy()}}
		if chance(r, 5) {
			delete(c.Resources.Limits, corev1.ResourceCPU)
		}
		return c
	}
	for i := range r.IntN(3) {
		c := container(fmt.Sprint("i", i))
		if chance(r, 35) {
			c.RestartPolicy = &always
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	for i := range 1 + r.IntN(2) {
		pod.Spec.Containers = append(pod.Spec.Containers, container(fmt.Sprint("c", i)))
	}
	return pod
}

func optionsByChance(r *rand.Rand) map[string]string {
	out := map[string]string{}
	for _, name := range []string{"full-pcpus-only", "distribute-cpus-across-numa", "align-by-socket", "distribute-cpus-across-cores",
		"strict-cpu-reservation", "prefer-align-cpus-by-uncorecache"} {
		if chance(r, 25) {
			out[name] = "true"
		}
	}
	return out
}

// TestCPUManager lets pods come and go on machines by chance, with options by chance.
func TestCPUManager(t *testing.T) {
	if err := utilfeature.DefaultMutableFeatureGate.Set("CPUManagerPolicyAlphaOptions=true"); err != nil {
		t.Fatal(err)
	}
	steps, refused := 0, 0
	for seed := range *machines {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		topo, up := machineByChance(r)
		text := optionsByChance(r)
		options, err := cpus.ParseOptions(text)
		if options.DistributeAcrossNUMA && up.NumNUMANodes > 4 {
			continue // upstream's choices of four nodes share an array: the last one looked at overwrites the best one
		}
		store := &affinity{policy: topologymanager.NewNonePolicy()}
		count := 1 + r.IntN(2)
		if options.FullPCPUsOnly { // upstream may give the other half of a core of which one half is reserved; ours does not
			count = up.CPUsPerCore()
		}
		upstream, upErr := cpumanager.NewStaticPolicy(quiet, up, count, cpuset.New(), store, text)
		if err == nil {
			err = options.Check(topo, topology.None)
		}
		var p *cpus.Static
		if err == nil {
			p, err = cpus.NewStatic(topo, options, cpuset.New(), *resource.NewQuantity(int64(count), resource.DecimalSI))
		}
		if fmt.Sprint(err) != fmt.Sprint(upErr) {
			t.Fatalf("seed %d: %v, upstream %v", seed, err, upErr)
		}
		if err != nil {
			continue
		}
		s, us := p.New(), cpustate.NewMemoryState(quiet)
		if err := upstream.Start(quiet, us); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		live := map[types.UID]*corev1.Pod{}
		for step := range 12 {
			if len(live) > 0 && chance(r, 30) {
				uid := slices.Sorted(maps.Keys(live))[r.IntN(len(live))]
				for c := range topology.Containers(live[uid]) {
					if err := upstream.RemoveContainer(quiet, us, string(uid), c.Name); err != nil {
						t.Fatal(err)
					}
				}
				s.Free(uid)
				delete(live, uid)
			} else {
				pod := podByChance(r, fmt.Sprint("pod", step), 1+len(topo)/2)
				live[pod.UID] = pod
				if a, b := printed(p.PodHints(s, pod)), oursAll(upstream.GetPodTopologyHints(quiet, us, pod, lifecycle.AddOperation)); a != b {
					t.Fatalf("seed %d step %d: hints of the pod %v, upstream %v", seed, step, a, b)
				}
				for c := range topology.Containers(pod) {
					hints := p.Hints(s, pod, c)
					if a, b := printed(hints), oursAll(upstream.GetTopologyHints(quiet, us, pod, c, lifecycle.AddOperation)); a != b {
						t.Fatalf("seed %d step %d %s: hints %v, upstream %v, %v, %v, %v, %v", seed, step, c.Name, a, b, text, s.Exclusive, plain(us.GetCPUAssignments()), topo)
					}
					store.hint = topology.Hint{}
					if list := hints["cpu"]; len(list) > 0 && chance(r, 60) {
						store.hint = list[r.IntN(len(list))]
					}
					a, b := p.Allocate(s, pod, c, store.hint.Nodes), upstream.Allocate(quiet, us, pod, c, lifecycle.AddOperation)
					if fmt.Sprint(a) != fmt.Sprint(b) {
						t.Fatalf("seed %d step %d %s: %v, upstream %v (%v)", seed, step, c.Name, a, b, text)
					}
					if steps++; a != nil {
						refused++
						break
					}
				}
			}
			if a, b := fmt.Sprint(s.Shared, s.Exclusive), fmt.Sprint(us.GetDefaultCPUSet(), plain(us.GetCPUAssignments())); a != b {
				t.Fatalf("seed %d step %d: %s\nupstream %s\n%v %v", seed, step, a, b, text, topo)
			}
		}
		filesOfCPUs(t, s, us)
	}
	t.Logf("%d containers, of which %d were refused", steps, refused)
}

// filesOfCPUs: each side reads what the other has written.
func filesOfCPUs(t *testing.T, s *cpus.State, us cpustate.State) {
	t.Helper()
	file, err := cpus.Encode(cpus.PolicyStatic, s)
	if err != nil {
		t.Fatal(err)
	}
	dir := writeFile(t, "cpu_manager_state", file)
	read, err := cpustate.NewCheckpointState(quiet, dir, "cpu_manager_state", "static", containermap.NewContainerMap())
	if err != nil {
		t.Fatal(err)
	}
	if a, b := fmt.Sprint(read.GetDefaultCPUSet(), plain(read.GetCPUAssignments())), fmt.Sprint(us.GetDefaultCPUSet(), plain(us.GetCPUAssignments())); a != b {
		t.Fatalf("upstream reads %s, not %s", a, b)
	}
	read.SetDefaultCPUSet(us.GetDefaultCPUSet()) // it writes its own file
	again, err := cpus.Decode(readFile(t, dir, "cpu_manager_state"), cpus.PolicyStatic)
	if err != nil || fmt.Sprint(again.Shared, again.Exclusive) != fmt.Sprint(s.Shared, s.Exclusive) {
		t.Fatalf("what upstream writes is %v, %v", again, err)
	}
}

// TestMemoryManager lets pods come and go on machines by chance.
func TestMemoryManager(t *testing.T) {
	steps, refused := 0, 0
	for seed := range *machines {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		info, totals := &model.MachineInfo{}, memory.Totals{}
		kept := uint64(1+r.IntN(2)) << 30
		for id := range 1 + r.IntN(4) {
			bytes := uint64(4+r.IntN(28)) << 30
			info.Topology = append(info.Topology, model.Node{Id: id, Memory: bytes})
			totals[id] = map[corev1.ResourceName]uint64{corev1.ResourceMemory: bytes}
		}
		reserved := corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(int64(kept), resource.BinarySI)}
		store := &affinity{policy: topologymanager.NewNonePolicy()}
		upstream, err := memorymanager.NewPolicyStatic(quiet, info, map[int]map[corev1.ResourceName]uint64{0: {corev1.ResourceMemory: kept}}, store)
		if err != nil {
			t.Fatal(err)
		}
		p, err := memory.NewStatic(totals, []kubeletv1beta1.MemoryReservation{{NumaNode: 0, Limits: reserved}}, reserved)
		if err != nil {
			t.Fatal(err)
		}
		s, us := memory.State{}, memorystate.NewMemoryState(quiet)
		if err := upstream.Start(quiet, us); err != nil {
			t.Fatal(err)
		}
		live := map[types.UID]*corev1.Pod{}
		for step := range 12 {
			if len(live) > 0 && chance(r, 35) {
				uid := slices.Sorted(maps.Keys(live))[r.IntN(len(live))]
				for c := range topology.Containers(live[uid]) {
					upstream.RemoveContainer(quiet, us, string(uid), c.Name)
				}
				s.Free(uid)
				delete(live, uid)
			} else {
				pod := podByChance(r, fmt.Sprint("pod", step), 2)
				live[pod.UID] = pod
				if a, b := printed(p.PodHints(s, pod)), oursAll(upstream.GetPodTopologyHints(quiet, us, pod, lifecycle.AddOperation)); a != b {
					t.Fatalf("seed %d step %d: hints of the pod %v, upstream %v", seed, step, a, b)
				}
				for c := range topology.Containers(pod) {
					hints := p.Hints(s, pod, c)
					if a, b := printed(hints), oursAll(upstream.GetTopologyHints(quiet, us, pod, c, lifecycle.AddOperation)); a != b {
						t.Fatalf("seed %d step %d %s: hints %v, upstream %v, %v", seed, step, c.Name, a, b, s)
					}
					store.hint = topology.Hint{Preferred: chance(r, 20)}
					if list := hints["memory"]; len(list) > 0 && chance(r, 60) {
						store.hint = list[r.IntN(len(list))]
					}
					a := p.Allocate(s, pod, c, store.hint)
					b := upstream.Allocate(klog.NewContext(context.Background(), quiet), us, pod, c, lifecycle.AddOperation)
					if fmt.Sprint(a) != fmt.Sprint(b) {
						t.Fatalf("seed %d step %d %s: %v, upstream %v", seed, step, c.Name, a, b)
					}
					if steps++; a != nil {
						refused++
						break
					}
				}
			}
			if a, b := fmt.Sprint(s), fmt.Sprint(us.GetMemoryAssignments()); a != b {
				t.Fatalf("seed %d step %d: %s\nupstream %s", seed, step, a, b)
			}
		}
		filesOfMemory(t, p, upstream, s)
	}
	t.Logf("%d containers, of which %d were refused", steps, refused)
}

// filesOfMemory: each side reads what the other has written.
func filesOfMemory(t *testing.T, p *memory.Static, upstream memorymanager.Policy, s memory.State) {
	t.Helper()
	file, err := p.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	dir := writeFile(t, "memory_manager_state", file)
	read, err := memorystate.NewCheckpointState(quiet, dir, "memory_manager_state", "Static")
	if err != nil {
		t.Fatal(err)
	}
	if err := upstream.Start(quiet, read); err != nil {
		t.Fatalf("upstream says %v", err)
	}
	read.SetMachineState(read.GetMachineState()) // it writes its own file
	again, err := p.Decode(readFile(t, dir, "memory_manager_state"))
	if err != nil || fmt.Sprint(again) != fmt.Sprint(s) {
		t.Fatalf("what upstream writes is %v, %v", again, err)
	}
}

func writeFile(t *testing.T, name string, data []byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func readFile(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// plain prints as ours does.
func plain(assigned cpustate.ContainerCPUAssignments) map[string]map[string]cpuset.CPUSet {
	return assigned
}
