package memory

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
)

func bytes(text string) uint64 {
	q := resource.MustParse(text)
	return uint64(q.Value())
}

// static has nodes with so much memory, of which node 0 keeps back 1Gi.
func static(t *testing.T, nodes ...string) *Static {
	t.Helper()
	totals := Totals{}
	for id, text := range nodes {
		totals[id] = map[corev1.ResourceName]uint64{corev1.ResourceMemory: bytes(text)}
	}
	kept := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	p, err := NewStatic(totals, []kubeletv1beta1.MemoryReservation{{NumaNode: 0, Limits: kept}}, kept)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// podOf has containers like "i:a=2Gi s:b=1Gi c=4Gi": a is an init container, b a sidecar, c a main container.
func podOf(uid, containers string) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid)}}
	always := corev1.ContainerRestartPolicyAlways
	for _, text := range strings.Fields(containers) {
		kind, name, special := strings.Cut(text, ":")
		if !special {
			name = text
		}
		name, amount, _ := strings.Cut(name, "=")
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse(amount)}
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

func allocate(p *Static, s State, pod *corev1.Pod) error {
	for c := range topology.Containers(pod) {
		if err := p.Allocate(s, pod, c, topology.Hint{}); err != nil {
			return err
		}
	}
	return nil
}

func TestAllocate(t *testing.T) {
	for name, test := range map[string]struct {
		pods []string
		want []string // of each pod: nodes and sizes by containers, or an error
	}{
		"the first node that has it":     {[]string{"c=2Gi", "c=2Gi"}, []string{"c=[0]2Gi", "c=[1]2Gi"}},
		"as few nodes as possible":       {[]string{"c=6Gi"}, []string{"c=[0 1]6Gi"}},
		"a group gives nothing by parts": {[]string{"c=5Gi", "c=1Gi", "c=1Gi"}, []string{"c=[0 1]5Gi", "c=[2]1Gi", "c=[2]1Gi"}},
		"a node in use is in no group":   {[]string{"c=1Gi", "c=7Gi", "c=6Gi"}, []string{"c=[0]1Gi", "c=[1 2]7Gi", "no NUMA nodes with enough memory is available"}},
		"too much":                       {[]string{"c=12Gi"}, []string{"no NUMA nodes with enough memory is available"}},
		"handed on":                      {[]string{"i:i=2Gi c=1Gi d=2Gi"}, []string{"i=[0]1Gi c=[0]1Gi d=[1]2Gi"}},
		"kept by a sidecar":              {[]string{"s:s=2Gi c=2Gi"}, []string{"s=[0]2Gi c=[1]2Gi"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := static(t, "3Gi", "4Gi", "4Gi"), State{}
			for i, text := range test.pods {
				pod := podOf(fmt.Sprint(i), text)
				got := ""
				if err := allocate(p, s, pod); err != nil {
					got = err.Error()
				}
				for c := range topology.Containers(pod) {
					for _, b := range s[pod.UID][c.Name] {
						got += fmt.Sprintf(" %s=%v%s", c.Name, b.Nodes, resource.NewQuantity(int64(b.Size), resource.BinarySI))
					}
				}
				if !strings.HasSuffix(strings.TrimSpace(got), test.want[i]) {
					t.Errorf("%s: %s, not %s", text, got, test.want[i])
				}
			}
		})
	}
}

// TestInitContainersThatHaveEnded give back what nobody has taken over.
func TestInitContainersThatHaveEnded(t *testing.T) {
	p, s := static(t, "4Gi"), State{}
	pod := podOf("p", "i:i=3Gi c=1Gi")
	if err := allocate(p, s, pod); err != nil {
		t.Fatal(err)
	}
	other := podOf("q", "c=2Gi")
	if err := allocate(p, s, other); err == nil {
		t.Error("the init container may still need it")
	}
	for _, name := range []string{"i", "debug"} {
		if s.Started(pod, name) {
			t.Errorf("nothing has ended when %s starts", name)
		}
	}
	if !s.Started(pod, "c") || s.Started(pod, "c") {
		t.Error("the init container has ended, once")
	}
	if err := allocate(p, s, other); err != nil || s.Nodes("q", "c") != topology.NodesOf(0) {
		t.Error(err)
	}
	if !s.Free("q") || s.Free("q") || s.Has("q") || !s.Has("p") {
		t.Error(s)
	}
}

// TestPodsByChance: no node gives more than it has, and a node is in one group, or gives by itself.
func TestPodsByChance(t *testing.T) {
	for seed := range 40 {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		p, s := static(t, "8Gi", "6Gi", "6Gi", "3Gi"), State{}
		for step := range 30 {
			pod := podOf(fmt.Sprint(r.IntN(5)), fmt.Sprintf("i:i=%dGi s:s=%dGi c=%dGi", 1+r.IntN(3), 1+r.IntN(2), 1+r.IntN(9)))
			s.Free(pod.UID)
			if r.IntN(3) > 0 && allocate(p, s, pod) != nil {
				s.Free(pod.UID)
			}
			sums, groups := map[topology.Nodes]uint64{}, map[int]topology.Nodes{}
			for _, b := range s.all() {
				nodes := topology.NodesOf(b.Nodes...)
				sums[nodes] += b.Size
				for _, id := range b.Nodes {
					if other, ok := groups[id]; ok && other != nodes {
						t.Fatalf("seed %d step %d: node %d is in %v and %v", seed, step, id, nodes.IDs(), other.IDs())
					}
					groups[id] = nodes
				}
			}
			for nodes, sum := range sums {
				if has := p.machine(State{}).sum(nodes, corev1.ResourceMemory, allocatable); sum > has {
					t.Fatalf("seed %d step %d: %v have %d and give %d", seed, step, nodes.IDs(), has, sum)
				}
			}
			file, err := p.Encode(s)
			if err != nil {
				t.Fatal(err)
			}
			again, err := p.Decode(file)
			if diff := cmp.Diff(s, again); err != nil || diff != "" {
				t.Fatal(err, diff)
			}
		}
	}
}

func TestReserved(t *testing.T) {
	totals := Totals{0: {corev1.ResourceMemory: 4 << 30}, 1: {corev1.ResourceMemory: 4 << 30}}
	of := func(text string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(text)}
	}
	for name, test := range map[string]struct {
		reserved []kubeletv1beta1.MemoryReservation
		node     string
		err      string
	}{
		"as much":      {[]kubeletv1beta1.MemoryReservation{{NumaNode: 0, Limits: of("1Gi")}, {NumaNode: 1, Limits: of("100Mi")}}, "1124Mi", ""},
		"less":         {[]kubeletv1beta1.MemoryReservation{{NumaNode: 0, Limits: of("1Gi")}}, "1124Mi", `the total amount "1Gi" of type "memory" is not equal to the value "1124Mi" determined by Node Allocatable feature`},
		"nothing":      {nil, "100Mi", `the total amount "0" of type "memory" is not equal to the value "100Mi" determined by Node Allocatable feature`},
		"nothing kept": {nil, "0", "[memorymanager] you should specify the system reserved memory"},
		"no such node": {[]kubeletv1beta1.MemoryReservation{{NumaNode: 2, Limits: of("1Gi")}}, "1Gi", "the reserved memory configuration references a NUMA node 2 that does not exist on this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := NewStatic(totals, test.reserved, of(test.node))
			if fmt.Sprint(err) != test.err && (test.err != "" || err != nil) {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			want := []Block{{[]int{0}, corev1.ResourceMemory, 3 << 30}, {[]int{1}, corev1.ResourceMemory, 4<<30 - 100<<20}}
			if diff := cmp.Diff(want, p.Allocatable()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFilesThatDoNotFit(t *testing.T) {
	p, s := static(t, "3Gi", "4Gi"), State{}
	if err := allocate(p, s, podOf("p", "c=3Gi")); err != nil {
		t.Fatal(err)
	}
	file, err := p.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	none, err := EncodeNone()
	if err != nil {
		t.Fatal(err)
	}
	for want, with := range map[string]struct {
		p    *Static
		file []byte
	}{
		"[memorymanager] the expected machine state is different from the real one":                      {static(t, "3Gi", "5Gi"), file},
		"[memorymanager] (pod: p, container: c) the memory assignment uses the NUMA that does not exist": {static(t, "3Gi"), file},
		`[memorymanager] configured policy "Static" differs from state checkpoint policy "None"`:         {p, none},
	} {
		if _, err := with.p.Decode(with.file); err == nil || err.Error() != want {
			t.Errorf("%v, not %s", err, want)
		}
	}
	if err := DecodeNone(none); err != nil {
		t.Error(err)
	}
	if err := DecodeNone(file); err == nil {
		t.Error("it is of the policy Static")
	}
}

func TestReadAMachine(t *testing.T) {
	sys := fstest.MapFS{
		"devices/system/node/node0/cpulist":                                 {Data: []byte("0-1\n")},
		"devices/system/node/node0/meminfo":                                 {Data: []byte("Node 0 MemTotal:        4194304 kB\nNode 0 MemFree: 1 kB\n")},
		"devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages": {Data: []byte("3\n")},
		"devices/system/node/node1/cpulist":                                 {Data: []byte("2-3\n")},
		"devices/system/node/node1/meminfo":                                 {Data: []byte("Node 1 MemTotal:        2097152 kB\n")},
	}
	got, err := Read(sys, 1)
	want := Totals{0: {corev1.ResourceMemory: 4 << 30, "hugepages-2Mi": 6 << 20}, 1: {corev1.ResourceMemory: 2 << 30}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if plain, err := Read(fstest.MapFS{}, 7<<30); err != nil || plain[0][corev1.ResourceMemory] != 7<<30 {
		t.Error(plain, err)
	}
}
