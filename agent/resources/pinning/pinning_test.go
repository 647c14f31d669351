package pinning

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/cpuset"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
	"github.com/setpoint-io/setpoint/agent/resources/topology/cpus"
	"github.com/setpoint-io/setpoint/agent/resources/topology/memory"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

// machineOf has two NUMA nodes with four CPUs and 4Gi each.
func machineOf() fs.FS {
	sys := fstest.MapFS{}
	put := func(name, text string) { sys["devices/system/"+name] = &fstest.MapFile{Data: []byte(text + "\n")} }
	put("cpu/online", "0-7")
	for id := range 8 {
		put(fmt.Sprintf("cpu/cpu%d/topology/physical_package_id", id), fmt.Sprint(id/4))
		put(fmt.Sprintf("cpu/cpu%d/topology/thread_siblings_list", id), fmt.Sprint(id))
	}
	for node, list := range []string{"0-3", "4-7"} {
		put(fmt.Sprintf("node/node%d/cpulist", node), list)
		put(fmt.Sprintf("node/node%d/meminfo", node), fmt.Sprintf("Node %d MemTotal: %d kB", node, 4<<20))
		put(fmt.Sprintf("node/node%d/distance", node), []string{"10 20", "20 10"}[node])
	}
	return sys
}

// containers run, by id.
type containers struct {
	mu      sync.Mutex
	running map[string]*runtimeapi.Container
	cpus    map[string]string
	fail    error
}

func (c *containers) ListContainers(context.Context, *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []*runtimeapi.Container
	for _, one := range c.running {
		out = append(out, one)
	}
	return out, nil
}

func (c *containers) UpdateContainerResources(_ context.Context, id string, r *runtimeapi.ContainerResources) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fail == nil {
		c.cpus[id] = r.Linux.CpusetCpus
	}
	return c.fail
}

func (c *containers) run(id, pod, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	labels := map[string]string{observed.LabelPodUID: pod, observed.LabelContainerName: name}
	c.running[id] = &runtimeapi.Container{Id: id, Labels: labels}
}

func (c *containers) on(id string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cpus[id]
}

// dongles are devices of which each container that asks for one gets it at one NUMA node.
type dongles struct {
	at    topology.Nodes
	given map[string]topology.Nodes
	freed []types.UID
}

func (d *dongles) Hints(*corev1.Pod, *corev1.Container, topology.Nodes) topology.Hints {
	if d.at == 0 {
		return nil
	}
	return topology.Hints{"example.com/dongle": {{Nodes: d.at, Preferred: true}}}
}

func (d *dongles) PodHints(pod *corev1.Pod, machine topology.Nodes) topology.Hints {
	return d.Hints(pod, nil, machine)
}

func (d *dongles) AllocateContainer(_ context.Context, pod *corev1.Pod, c *corev1.Container, near topology.Nodes) error {
	d.given[string(pod.UID)+"/"+c.Name] = near
	return nil
}

func (d *dongles) Free(pod types.UID) { d.freed = append(d.freed, pod) }

type world struct {
	*Manager
	cfg     Config
	runtime *containers
	dongles *dongles
}

func newWorld(t *testing.T, settings Settings) *world {
	t.Helper()
	w := &world{runtime: &containers{running: map[string]*runtimeapi.Container{}, cpus: map[string]string{}}, dongles: &dongles{given: map[string]topology.Nodes{}}}
	kept := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	settings.ReservedMemory = []kubeletv1beta1.MemoryReservation{{NumaNode: 0, Limits: corev1.ResourceList{corev1.ResourceMemory: kept[corev1.ResourceMemory]}}}
	w.cfg = Config{Settings: settings, Dir: t.TempDir(), Sys: machineOf(), Reserved: kept, Devices: w.dongles, Runtime: w.runtime,
		Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	w.again(t)
	return w
}

// again has the agent replaced.
func (w *world) again(t *testing.T) {
	t.Helper()
	var err error
	if w.Manager, err = New(w.cfg); err != nil {
		t.Fatal(err)
	}
}

func podOf(uid, cpu, bytes string) *corev1.Pod {
	list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(bytes)}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}, Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "c", Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}}}}
}

// runsOn is what the runtime is told of a container of a pod.
func (w *world) runsOn(uid string) string {
	r := &runtimeapi.LinuxContainerResources{CpuQuota: 100}
	w.Pin(types.UID(uid), "c", r)
	return fmt.Sprintf("%s|%s|%d", r.CpusetCpus, r.CpusetMems, r.CpuQuota)
}

var (
	staticCPUs = Settings{CPUPolicy: cpus.PolicyStatic}
	all        = Settings{CPUPolicy: cpus.PolicyStatic, MemoryPolicy: memory.PolicyStatic, Topology: topology.SingleNUMANode, Scope: topology.OfContainer}
)

func TestCPUsOfItsOwn(t *testing.T) {
	w := newWorld(t, staticCPUs)
	pod := podOf("a", "2", "1Gi")
	if err := w.Allocate(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if got := w.runsOn("a"); got != "1-2||-1" {
		t.Error(got)
	}
	if got := w.runsOn("b"); got != "0,3-7||100" {
		t.Error(got)
	}
	if diff := cmp.Diff([]int64{1, 2}, w.CPUs("a", "c")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int64{1, 2, 3, 4, 5, 6, 7}, w.AllocatableCPUs()); diff != "" {
		t.Error(diff)
	}
	w.again(t)
	if got := w.runsOn("a"); got != "1-2||-1" || !w.Has("a") {
		t.Errorf("the next agent says %s", got)
	}
	const want = "Allocate failed due to not enough cpus available to satisfy request: requested=6, available=5, which is unexpected"
	if err := w.Allocate(t.Context(), podOf("b", "6", "1Gi")); err == nil || err.Error() != want {
		t.Error(err)
	}
	if diff := cmp.Diff([]types.UID{"b"}, w.dongles.freed); diff != "" {
		t.Error(diff)
	}
	w.Retain(func(pod types.UID) bool { return pod != "a" })
	if got := w.runsOn("a"); got != "0-7||100" || w.Has("a") {
		t.Error(got)
	}
	quota := &runtimeapi.LinuxContainerResources{CpuQuota: 100}
	if w.PinPod("a", quota); quota.CpuQuota != 100 {
		t.Error("a pod without CPUs of its own has a quota")
	}
}

// TestContainersAreMoved when the shared CPUs change, at once, and again after a while if that fails.
func TestContainersAreMoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, staticCPUs)
		w.runtime.run("1", "shared", "c")
		w.runtime.run("2", "a", "c")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Run(ctx)
		}()
		expect := func(first, second string) {
			t.Helper()
			synctest.Wait()
			if got := w.runtime.on("1") + " " + w.runtime.on("2"); got != first+" "+second {
				t.Errorf("they run on %s", got)
			}
		}
		expect("0-7", "0-7")
		if err := w.Allocate(t.Context(), podOf("a", "2", "1Gi")); err != nil {
			t.Fatal(err)
		}
		expect("0,3-7", "1-2")
		w.runtime.mu.Lock()
		w.runtime.fail = context.DeadlineExceeded
		w.runtime.mu.Unlock()
		w.Free("a")
		expect("0,3-7", "1-2")
		w.runtime.mu.Lock()
		w.runtime.fail = nil
		w.runtime.mu.Unlock()
		time.Sleep(reconcileEvery)
		expect("0-7", "0-7")
		cancel()
		<-done
	})
}

func TestFromTheSameNode(t *testing.T) {
	w := newWorld(t, all)
	w.dongles.at = topology.NodesOf(1)
	if err := w.Allocate(t.Context(), podOf("a", "2", "2Gi")); err != nil {
		t.Fatal(err)
	}
	if got := w.runsOn("a"); got != "4-5|1|-1" || w.dongles.given["a/c"] != topology.NodesOf(1) {
		t.Error(got, w.dongles.given)
	}
	want := []memory.Block{{Nodes: []int{1}, Type: corev1.ResourceMemory, Size: 2 << 30}}
	if diff := cmp.Diff(want, w.Memory("a", "c")); diff != "" {
		t.Error(diff)
	}
	err := w.Allocate(t.Context(), podOf("b", "1", "3Gi"))
	if err == nil || err.Error() != "Resources cannot be allocated with Topology locality" || err.(interface{ Reason() string }).Reason() != "TopologyAffinityError" {
		t.Error(err)
	}
	w.dongles.at = 0
	if err := w.Allocate(t.Context(), podOf("b", "1", "3Gi")); err != nil {
		t.Error(err)
	}
	if got := w.runsOn("b"); got != "1|0|-1" {
		t.Error(got)
	}
	w.again(t)
	if got := w.runsOn("b"); got != "1|0|-1" {
		t.Errorf("the next agent says %s", got)
	}
}

func TestAPodAsAWhole(t *testing.T) {
	settings := all
	settings.Scope = topology.OfPod
	w := newWorld(t, settings)
	pod := podOf("a", "2", "2Gi")
	second := *pod.Spec.Containers[0].DeepCopy()
	second.Name = "d"
	pod.Spec.Containers = append(pod.Spec.Containers, second)
	if err := w.Allocate(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	if got, other := w.CPUs("a", "c"), w.CPUs("a", "d"); cmp.Diff([]int64{4, 5, 6, 7}, append(got, other...)) != "" {
		t.Error(got, other)
	}
	if err := w.Allocate(t.Context(), podOf("b", "4", "1Gi")); err == nil {
		t.Error("no node has as many")
	}
}

// TestARecordThatWasLost: containers that start again get anew what they need.
func TestARecordThatWasLost(t *testing.T) {
	w := newWorld(t, all)
	pod := podOf("a", "2", "2Gi")
	if err := w.Starting(pod, &pod.Spec.Containers[0]); err != nil {
		t.Fatal(err)
	}
	w.again(t)
	if got := w.runsOn("a"); got != "1-2|0|-1" {
		t.Error(got)
	}
}

func TestFilesOfOtherPolicies(t *testing.T) {
	w := newWorld(t, all)
	for name, change := range map[string]func(*Settings){
		`configured policy "none" differs from state checkpoint policy "static", please drain this node and delete the CPU manager checkpoint file`: func(s *Settings) { s.CPUPolicy = "none" },
		`[memorymanager] configured policy "None" differs from state checkpoint policy "Static", please drain this node and delete the memory`:      func(s *Settings) { s.MemoryPolicy = "None" },
	} {
		cfg := w.cfg
		change(&cfg.Settings)
		if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v, not %s", err, name)
		}
	}
	if err := os.WriteFile(filepath.Join(w.cfg.Dir, cpuFile), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := New(w.cfg); err == nil || !strings.Contains(err.Error(), "checkpoint is corrupted") {
		t.Error(err)
	}
}

func TestSettingsThatDoNotFit(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"reserved-cpus: 9 is not a subset of online-cpus: 0-7": func(c *Config) { c.ReservedCPUs = cpuset.New(9) },
		`the total amount "1Gi" of type "memory" is not equal to the value "2Gi" determined by Node Allocatable feature`: func(c *Config) {
			c.Reserved = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("2Gi")}
		},
		"new static policy error: Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option": func(c *Config) {
			c.CPUOptions.AlignBySocket = true
		},
	} {
		cfg := newWorld(t, all).cfg
		change(&cfg)
		if _, err := New(cfg); err == nil || err.Error() != want {
			t.Errorf("%v, not %s", err, want)
		}
	}
}

func TestMetrics(t *testing.T) {
	w := newWorld(t, all)
	if err := w.Allocate(t.Context(), podOf("a", "2", "2Gi")); err != nil {
		t.Fatal(err)
	}
	if err := w.Allocate(t.Context(), podOf("b", "4", "2Gi")); err != nil {
		t.Fatal(err)
	}
	if err := w.Allocate(t.Context(), podOf("c", "2", "2Gi")); err == nil {
		t.Fatal("no node has as many")
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			name := family.GetName()
			for _, l := range m.Label {
				name += " " + l.GetValue()
			}
			got[name] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	want := map[string]float64{
		"kubelet_topology_manager_admission_requests_total": 3, "kubelet_topology_manager_admission_errors_total": 1,
		"kubelet_topology_manager_admission_duration_ms": 3, "kubelet_cpu_manager_pinning_requests_total": 2,
		"kubelet_cpu_manager_pinning_errors_total": 0, "kubelet_memory_manager_pinning_requests_total": 2,
		"kubelet_memory_manager_pinning_errors_total": 0, "kubelet_cpu_manager_shared_pool_size_millicores": 1000,
		"kubelet_cpu_manager_exclusive_cpu_allocation_count": 6, "kubelet_cpu_manager_allocation_per_numa 0": 2,
		"kubelet_cpu_manager_allocation_per_numa 1": 4, "kubelet_container_aligned_compute_resources_count numa_node container": 2,
		"kubelet_container_aligned_compute_resources_count uncore_cache container": 2, "kubelet_container_aligned_compute_resources_count physical_cpu container": 0,
		"kubelet_container_aligned_compute_resources_count numa_node pod": 0, "kubelet_container_aligned_compute_resources_failure_count numa_node pod": 0,
		"kubelet_container_aligned_compute_resources_failure_count physical_cpu container": 0,
		"kubelet_container_aligned_compute_resources_failure_count numa_node container":    1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestNoPolicy pins nothing, and needs nothing of the machine.
func TestNoPolicy(t *testing.T) {
	m, err := New(Config{Dir: t.TempDir(), Sys: fstest.MapFS{}})
	if err != nil {
		t.Fatal(err)
	}
	r := &runtimeapi.LinuxContainerResources{CpuQuota: 100}
	if m.Pin("a", "c", r); r.CpusetCpus != "" || r.CpusetMems != "" || r.CpuQuota != 100 || m.AllocatableCPUs() != nil || m.AllocatableMemory() != nil {
		t.Error(r)
	}
	again := Config{Dir: m.Dir, Sys: machineOf(), Settings: staticCPUs, Reserved: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
	if _, err := New(again); err == nil || !strings.Contains(err.Error(), `configured policy "static" differs from state checkpoint policy "none"`) {
		t.Error(err)
	}
}

// TestANewAgentNeedsNoRoom: on a full disk it starts, since nothing has changed since the last one.
func TestANewAgentNeedsNoRoom(t *testing.T) {
	w := newWorld(t, all)
	for _, file := range []string{cpuFile, memoryFile} {
		if err := os.Mkdir(filepath.Join(w.cfg.Dir, file+".tmp"), 0o700); err != nil { // where it would be written
			t.Fatal(err)
		}
	}
	w.again(t)
}
