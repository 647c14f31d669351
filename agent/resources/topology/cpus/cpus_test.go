package cpus

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/cpuset"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
)

// machine has as many sockets, NUMA nodes in each, cores in each of these and threads in each core. The second threads come last, as on
// most machines. Two cores share a cache.
func machine(sockets, nodes, cores, threads int) Topology {
	t := Topology{}
	all := sockets * nodes * cores
	for core := range all {
		for thread := range threads {
			t[core+thread*all] = CPU{Node: core / cores, Socket: core / cores / nodes, Core: core, Cache: core / 2 * 2}
		}
	}
	return t
}

func without(t Topology, offline ...int) Topology {
	out := maps.Clone(t)
	for _, id := range offline {
		delete(out, id)
	}
	return out
}

func set(t *testing.T, text string) cpuset.CPUSet {
	t.Helper()
	s, err := cpuset.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTake(t *testing.T) {
	two := machine(2, 1, 4, 2) // socket 0 has 0-3,8-11, socket 1 has 4-7,12-15
	for name, test := range map[string]struct {
		machine Topology
		options Options
		free    string
		count   int
		want    string
	}{
		"a core as a whole":          {two, Options{}, "0-15", 2, "0,8"},
		"a whole socket":             {two, Options{}, "0-15", 8, "0-3,8-11"},
		"a free socket, then a core": {two, Options{}, "0-15", 10, "0-4,8-12"},
		"what is broken already":     {two, Options{}, "0,2-15", 1, "9"},
		"where less is left":         {two, Options{}, "0-5,8-13", 2, "4,12"},
		"a part, where less is left": {two, Options{}, "1-15", 3, "1,8-9"},
		"one of each core":           {two, Options{DistributeAcrossCores: true}, "0-15", 4, "0-3"},
		"the same of both nodes":     {two, Options{DistributeAcrossNUMA: true}, "0-15", 12, "0-2,4-6,8-10,12-14"},
		"one node is enough":         {two, Options{DistributeAcrossNUMA: true}, "0-15", 6, "0-2,8-10"},
		"whole cores of both":        {two, Options{DistributeAcrossNUMA: true, FullPCPUsOnly: true}, "0-15", 10, "0-2,4-5,8-10,12-13"},
		"one cache":                  {machine(1, 1, 8, 1), Options{PreferAlignByCache: true}, "1-7", 2, "2-3"},
		"one cache of two":           {machine(1, 1, 8, 1), Options{}, "1-7", 2, "1-2"},
		"no threads":                 {machine(2, 1, 4, 1), Options{}, "1-7", 3, "1-3"},
		"a core of which one is off": {without(machine(1, 1, 4, 2), 5), Options{}, "0-4,6-7", 2, "0,4"},
		"two nodes in a socket":      {machine(1, 2, 2, 2), Options{}, "0-7", 4, "0-1,4-5"},
		"nothing":                    {two, Options{}, "", 0, ""},
		"the rest of a machine":      {two, Options{DistributeAcrossNUMA: true}, "3,15", 2, "3,15"},
		"what cannot be equal":       {two, Options{DistributeAcrossNUMA: true}, "0-3,8-11,4", 9, "0-4,8-11"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Take(test.machine, test.options, set(t, test.free), test.count)
			if err != nil || got.String() != test.want {
				t.Errorf("%s %v, not %s", got, err, test.want)
			}
		})
	}
	_, err := Take(two, Options{}, cpuset.New(1, 2), 3)
	if err == nil || err.Error() != "not enough cpus available to satisfy request: requested=3, available=2" {
		t.Error(err)
	}
}

// TestTakeFromMachinesByChance, of which some CPUs are offline and others are used: the number is exact, nothing is given that is not
// free, a part of a core is taken only if no core is left that fits, and one NUMA node if one is enough.
func TestTakeFromMachinesByChance(t *testing.T) {
	for seed := range 1500 {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		m := machine(1+r.IntN(2), 1+r.IntN(2), 1+r.IntN(5), 1+r.IntN(2))
		free := m.where(func(CPU) bool { return r.IntN(4) > 0 })
		m = m.only(m.where(func(CPU) bool { return r.IntN(8) > 0 }).Union(free))
		count := r.IntN(free.Size() + 1)
		for _, options := range []Options{{}, {DistributeAcrossNUMA: true}, {PreferAlignByCache: true}, {DistributeAcrossCores: true}} {
			got, err := Take(m, options, free, count)
			if err != nil || got.Size() != count || !got.IsSubsetOf(free) {
				t.Fatalf("seed %d %+v: %s of %s, not %d: %v", seed, options, got, free, count, err)
			}
			if options == (Options{}) {
				cores, of := partly(m, got), m.only(free.Difference(got)).parts(ofCore)
				if len(cores) > 1 {
					for core, n := range of {
						if all := m.parts(ofCore)[core]; n == all && all > 1 && all <= len(cores) {
							t.Fatalf("seed %d: %s of %s breaks cores %v, and core %d is free", seed, got, free, cores, core)
						}
					}
				}
			}
		}
	}
}

// partly are the cores that are free as a whole and of which only a part was taken.
func partly(m Topology, got cpuset.CPUSet) []int {
	var out []int
	all := m.parts(ofCore)
	for core, n := range m.only(got).parts(ofCore) {
		if n < all[core] {
			out = append(out, core)
		}
	}
	return out
}

// podOf has containers like "i:a=2 s:b=1 c=4": a is an init container, b a sidecar, c a main container, with as many CPUs.
func podOf(uid, containers string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
	always := corev1.ContainerRestartPolicyAlways
	for _, text := range strings.Fields(containers) {
		kind, name, special := strings.Cut(text, ":")
		if !special {
			name = text
		}
		name, amount, _ := strings.Cut(name, "=")
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(amount), corev1.ResourceMemory: resource.MustParse("1Gi")}
		c := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: list, Limits: list}}
		switch {
		case !special:
			pod.Spec.Containers = append(pod.Spec.Containers, c)
			continue
		case kind == "s":
			c.RestartPolicy = &always
		}
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, c)
	}
	return pod
}

func static(t *testing.T, m Topology, options Options, reserved string) *Static {
	t.Helper()
	named := set(t, reserved)
	p, err := NewStatic(m, options, named, *resource.NewQuantity(int64(named.Size()), resource.DecimalSI))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func allocate(p *Static, s *State, pod *corev1.Pod) error {
	for c := range topology.Containers(pod) {
		if err := p.Allocate(s, pod, c, 0); err != nil {
			return err
		}
	}
	return nil
}

func has(s *State, pod *corev1.Pod) string {
	out := ""
	for c := range topology.Containers(pod) {
		if cpus, ok := s.Of(pod.UID, c.Name); ok {
			out += fmt.Sprintf("%s=%s ", c.Name, cpus)
		}
	}
	return strings.TrimSpace(out)
}

func TestWhoGetsCPUs(t *testing.T) {
	burstable := podOf("b", "c=2")
	burstable.Spec.Containers[0].Resources.Limits = nil
	ofPod := podOf("p", "c=2")
	ofPod.Spec.Resources = ofPod.Spec.Containers[0].Resources.DeepCopy()
	for name, test := range map[string]struct {
		pod          *corev1.Pod
		want, shared string
	}{
		"whole CPUs":                   {podOf("a", "c=2"), "c=1,5", "0,2-4,6-7"},
		"a half":                       {podOf("a", "c=500m"), "", "0-7"},
		"one of two containers":        {podOf("a", "c=1500m d=1"), "d=4", "0-3,5-7"},
		"Burstable":                    {burstable, "", "0-7"},
		"resources of the pod":         {ofPod, "", "0-7"},
		"handed on by init containers": {podOf("a", "i:i=4 i:j=2 c=2 d=2"), "i=1-2,5-6 j=1,5 c=1,5 d=2,6", "0,3-4,7"},
		"kept by sidecars":             {podOf("a", "i:i=2 s:s=2 c=2"), "i=1,5 s=1,5 c=2,6", "0,3-4,7"},
	} {
		t.Run(name, func(t *testing.T) {
			p := static(t, machine(1, 1, 4, 2), Options{}, "0")
			s := p.New()
			if err := allocate(p, s, test.pod); err != nil {
				t.Fatal(err)
			}
			if got := has(s, test.pod); got != test.want || s.Shared.String() != test.shared {
				t.Errorf("%s and %s, not %s and %s", got, s.Shared, test.want, test.shared)
			}
			if s.Free(test.pod.UID); s.Shared.String() != "0-7" {
				t.Errorf("%s are shared when the pod is gone", s.Shared)
			}
		})
	}
}

func TestCoresAsAWhole(t *testing.T) {
	p := static(t, machine(1, 1, 4, 2), Options{FullPCPUsOnly: true}, "0")
	s := p.New()
	if err := allocate(p, s, podOf("a", "c=1")); err == nil || err.Error() != "SMT Alignment Error: requested 1 cpus not multiple cpus per core = 2" {
		t.Error(err)
	}
	if err := allocate(p, s, podOf("a", "c=4")); err != nil || s.Shared.String() != "0,3-4,7" {
		t.Error(s.Shared, err)
	}
	const want = "SMT Alignment Error: not enough free physical CPUs: available physical CPUs = 2, requested CPUs = 4, CPUs per core = 2"
	if err := allocate(p, s, podOf("b", "c=4")); err == nil || err.Error() != want {
		t.Error(err)
	}
}

// TestPodsByChance come and go: nobody shares what is somebody's, and nobody has what is reserved.
func TestPodsByChance(t *testing.T) {
	for seed := range 150 {
		r := rand.New(rand.NewPCG(uint64(seed), 2))
		m := machine(1+r.IntN(2), 1+r.IntN(2), 2+r.IntN(4), 1+r.IntN(2))
		m = without(m, 1+r.IntN(len(m)))
		options := Options{StrictReservation: r.IntN(2) == 0, FullPCPUsOnly: r.IntN(3) == 0, DistributeAcrossNUMA: r.IntN(3) == 0}
		p := static(t, m, options, "0")
		s := p.New()
		for step := range 30 {
			pod := podOf(fmt.Sprint(r.IntN(4)), fmt.Sprintf("i:i=%d s:s=%d c=%d d=%d", 1+r.IntN(3), 1+r.IntN(2), 1+r.IntN(4), 1+r.IntN(2)))
			s.Free(pod.UID)
			if r.IntN(3) > 0 && allocate(p, s, pod) != nil {
				s.Free(pod.UID)
			}
			if err := p.Check(s); err != nil {
				t.Fatalf("seed %d step %d: %v", seed, step, err)
			}
			judge(t, p, s)
			file, err := Encode(PolicyStatic, s)
			if err != nil {
				t.Fatal(err)
			}
			if again, err := Decode(file, PolicyStatic); err != nil || fmt.Sprint(again.Shared, again.Exclusive) != fmt.Sprint(s.Shared, s.Exclusive) && s.Exclusive != nil {
				t.Fatalf("%v, %v, not %v", again, err, s)
			}
		}
	}
}

func judge(t *testing.T, p *Static, s *State) {
	t.Helper()
	owner := map[int]types.UID{}
	for pod, containers := range s.Exclusive {
		for name, cpus := range containers {
			if p.Options.FullPCPUsOnly && (len(partly(p.Topology, cpus)) > 0 || cpus.Size()%p.Topology.threads() != 0) {
				t.Fatalf("%s %s has %s, which are not cores", pod, name, cpus)
			}
			for _, id := range cpus.List() {
				if other, ok := owner[id]; ok && other != pod || p.Reserved.Contains(id) || s.Shared.Contains(id) {
					t.Fatalf("CPU %d of %s is of %s, reserved or shared", id, pod, other)
				}
				owner[id] = pod
			}
		}
	}
}

func TestNearNodes(t *testing.T) {
	p := static(t, machine(2, 1, 4, 1), Options{}, "0")
	s := p.New()
	pod := podOf("a", "c=2")
	hints := p.Hints(s, pod, &pod.Spec.Containers[0])
	want := topology.Hints{"cpu": {{Nodes: topology.NodesOf(0), Preferred: true}, {Nodes: topology.NodesOf(1), Preferred: true}, {Nodes: topology.NodesOf(0, 1)}}}
	if diff := cmp.Diff(want, hints); diff != "" {
		t.Error(diff)
	}
	if err := p.Allocate(s, pod, &pod.Spec.Containers[0], topology.NodesOf(1)); err != nil || has(s, pod) != "c=4-5" {
		t.Error(has(s, pod), err)
	}
	large := podOf("b", "c=4")
	if err := p.Allocate(s, large, &large.Spec.Containers[0], topology.NodesOf(0)); err != nil || has(s, large) != "c=1-3,6" {
		t.Error(has(s, large), err)
	}
	if again := p.Hints(s, pod, &pod.Spec.Containers[0]); len(again["cpu"]) != 2 || !again["cpu"][0].Preferred || again["cpu"][0].Nodes != topology.NodesOf(1) {
		t.Error(again)
	}
}

func TestStatesThatDoNotFit(t *testing.T) {
	p := static(t, machine(1, 1, 4, 1), Options{}, "0")
	strict := static(t, machine(1, 1, 4, 1), Options{StrictReservation: true}, "0")
	of := func(shared, c string) *State {
		s := &State{Shared: set(t, shared)}
		s.put("p", "c", set(t, c))
		return s
	}
	for want, err := range map[string]error{
		"default cpuset cannot be empty":                                               p.Check(of("", "1")),
		`not all reserved cpus: "0" are present in defaultCpuSet: "1-3"`:               p.Check(of("1-3", "0")),
		`some of strictly reserved cpus: "0" are present in defaultCpuSet: "0-2"`:      strict.Check(of("0-2", "3")),
		`pod: p, container: c cpuset: "2" overlaps with default cpuset "0-3"`:          p.Check(of("0-3", "2")),
		`current set of available CPUs "0-3" doesn't match with CPUs in state "0-2,4"`: p.Check(of("0-2", "4")),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("%v, not %s", err, want)
		}
	}
	file, err := Encode(PolicyNone, &State{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(file, PolicyStatic); err == nil || err.Error() != `configured policy "static" differs from state checkpoint policy "none"` {
		t.Error(err)
	}
}

func TestNewStatic(t *testing.T) {
	p, err := NewStatic(machine(1, 1, 4, 2), Options{}, cpuset.New(), resource.MustParse("1500m"))
	if err != nil || p.Reserved.String() != "0,4" {
		t.Error(p, err)
	}
	if _, err := NewStatic(machine(1, 1, 1, 2), Options{}, cpuset.New(), resource.Quantity{}); err == nil || !strings.Contains(err.Error(), "to be greater than zero") {
		t.Error(err)
	}
	const want = "[cpumanager] unable to reserve the required amount of CPUs (size of  did not equal 3)"
	if _, err := NewStatic(machine(1, 1, 1, 2), Options{}, cpuset.New(), resource.MustParse("3")); err == nil || err.Error() != want {
		t.Error(err)
	}
}

func TestParseOptions(t *testing.T) {
	all := map[string]string{}
	for _, name := range []string{fullPCPUsOnly, distributeAcrossNUMA, alignBySocket, strictReservation} {
		all[name] = "true"
	}
	if o, err := ParseOptions(all); err != nil || o != (Options{FullPCPUsOnly: true, DistributeAcrossNUMA: true, AlignBySocket: true, StrictReservation: true}) {
		t.Error(o, err)
	}
	for want, options := range map[string]map[string]string{
		`unknown CPU Manager Policy option: "x"`:                                                                                  {"x": "true"},
		`bad value for option "full-pcpus-only": strconv.ParseBool: parsing "x": invalid syntax`:                                  {fullPCPUsOnly: "x"},
		"static policy options full-pcpus-only and distribute-cpus-across-cores can not be used at the same time":                 {fullPCPUsOnly: "true", distributeAcrossCores: "true"},
		"static policy options prefer-align-cpus-by-uncorecache and distribute-cpus-across-numa can not be used at the same time": {preferAlignByCache: "true", distributeAcrossNUMA: "true"},
	} {
		if _, err := ParseOptions(options); err == nil || err.Error() != want {
			t.Errorf("%v, not %s", err, want)
		}
	}
}

// TestReadAMachine: two sockets, one of whose CPUs is offline, with threads and a cache for each socket.
func TestReadAMachine(t *testing.T) {
	sys := fstest.MapFS{"devices/system/cpu/online": {Data: []byte("0-2,4-7\n")}}
	put := func(name, text string) { sys[name] = &fstest.MapFile{Data: []byte(text + "\n")} }
	put("devices/system/node/node0/cpulist", "0-1,4-5")
	put("devices/system/node/node1/cpulist", "2-3,6-7")
	for id := range 8 {
		dir := fmt.Sprintf("devices/system/cpu/cpu%d/", id)
		socket := id % 4 / 2
		put(dir+"topology/physical_package_id", fmt.Sprint(socket))
		put(dir+"topology/thread_siblings_list", fmt.Sprintf("%d,%d", id%4, id%4+4))
		put(dir+"cache/index0/level", "1")
		put(dir+"cache/index3/level", "3")
		put(dir+"cache/index3/shared_cpu_list", []string{"0-1,4-5", "2-3,6-7"}[socket])
	}
	got, err := Read(sys)
	if err != nil {
		t.Fatal(err)
	}
	want := Topology{0: {0, 0, 0, 0}, 1: {0, 0, 1, 0}, 2: {1, 1, 2, 2}, 4: {0, 0, 0, 0}, 5: {0, 0, 1, 0}, 6: {1, 1, 2, 2}, 7: {1, 1, 7, 2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	plain, err := Read(fstest.MapFS{"devices/system/cpu/online": {Data: []byte("0-1\n")}})
	if diff := cmp.Diff(Topology{0: {}, 1: {Core: 1}}, plain); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if _, err := Read(fstest.MapFS{}); err == nil {
		t.Error("no CPUs")
	}
	if sockets := slices.Sorted(maps.Keys(got.sockets(topology.NodesOf(0, 1)))); len(sockets) != 2 {
		t.Error(sockets)
	}
}
