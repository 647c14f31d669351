package topology

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/cpuset"
)

func hint(preferred bool, nodes ...int) Hint {
	return Hint{Nodes: NodesOf(nodes...), Preferred: preferred}
}

func TestMerge(t *testing.T) {
	cpu := func(hints ...Hint) Hints { return Hints{"cpu": hints} }
	gpu := func(hints ...Hint) Hints { return Hints{"gpu": hints} }
	for name, test := range map[string]struct {
		hints  []Hints
		want   Hint
		admits string // by best-effort, restricted, single-numa-node
	}{
		"nobody cares":          {[]Hints{nil, {"gpu": nil}}, hint(true, 0, 1), "yes yes yes"},
		"one cares":             {[]Hints{cpu(hint(true, 0), hint(true, 1), hint(false, 0, 1)), nil}, hint(true, 0), "yes yes yes"},
		"the same node":         {[]Hints{cpu(hint(true, 0), hint(true, 1)), gpu(hint(true, 1))}, hint(true, 1), "yes yes yes"},
		"different nodes":       {[]Hints{cpu(hint(true, 0), hint(false, 0, 1)), gpu(hint(true, 1), hint(false, 0, 1))}, hint(false, 0), "yes no no"},
		"both nodes are needed": {[]Hints{cpu(hint(true, 0, 1)), gpu(hint(true, 0, 1))}, hint(true, 0, 1), "yes yes no"},
		"impossible":            {[]Hints{{"cpu": Impossible()}, gpu(hint(true, 1))}, hint(false, 1), "yes no no"},
		"nothing in common":     {[]Hints{cpu(hint(true, 0)), gpu(hint(true, 1))}, hint(false, 0, 1), "yes no no"},
	} {
		t.Run(name, func(t *testing.T) {
			m := Manager{Nodes: NodesOf(0, 1)}
			admits := ""
			for _, m.Policy = range Policies[1:] {
				best, ok := m.Merge(test.hints)
				if m.Policy == BestEffort && best != test.want {
					t.Errorf("%v, not %v", best, test.want)
				}
				admits += map[bool]string{true: "yes ", false: "no "}[ok]
			}
			if admits != test.admits+" " {
				t.Errorf("%s, not %s", admits, test.admits)
			}
		})
	}
	none := Manager{Policy: None, Nodes: NodesOf(0, 1)}
	if best, ok := none.Merge([]Hints{{"cpu": Impossible()}}); !ok || best != (Hint{}) {
		t.Error(best, ok)
	}
}

// TestNeverASpread: what single-numa-node admits is on one node, and each resource has a preferred hint for it or does not care.
func TestNeverASpread(t *testing.T) {
	m := Manager{Policy: SingleNUMANode, Nodes: NodesOf(0, 1, 2, 3)}
	admitted := 0
	for seed := range 5000 {
		r := rand.New(rand.NewPCG(uint64(seed), 0))
		var all []Hints
		for range 1 + r.IntN(3) {
			list := Impossible()
			for nodes := range m.Nodes.Subsets() {
				if r.IntN(3) == 0 {
					list = append(list, Hint{Nodes: nodes, Preferred: r.IntN(2) == 0})
				}
			}
			all = append(all, Hints{"r": list})
		}
		best, ok := m.Merge(all)
		if !ok {
			continue
		}
		admitted++
		for _, hints := range all {
			if best.Nodes.Count() != 1 || !slices.Contains(hints["r"], best) {
				t.Fatalf("seed %d: %v is admitted for %v", seed, best, all)
			}
		}
	}
	if admitted == 0 {
		t.Error("nothing was admitted")
	}
}

// TestManyResources takes no time that grows with the combinations: there are more than a google of them.
func TestManyResources(t *testing.T) {
	m := Manager{Policy: Restricted, Nodes: NodesOf(0, 1, 2, 3, 4, 5, 6, 7)}
	hints := Hints{}
	for i := range 50 {
		for nodes := range m.Nodes.Subsets() {
			hints[fmt.Sprint(i)] = append(hints[fmt.Sprint(i)], Hint{Nodes: nodes, Preferred: nodes.Count() == 2})
		}
	}
	if best, ok := m.Merge([]Hints{hints}); !ok || best != hint(true, 0, 1) {
		t.Error(best, ok)
	}
}

func TestTheClosest(t *testing.T) {
	m := Manager{Policy: BestEffort, Nodes: NodesOf(0, 1, 2), Options: Options{PreferClosest: true},
		Distances: map[int]map[int]int{0: {0: 10, 1: 30, 2: 20}, 1: {0: 30, 1: 10, 2: 20}, 2: {0: 20, 1: 20, 2: 10}}}
	hints := []Hints{{"cpu": {hint(true, 0, 1), hint(true, 1, 2)}}}
	if best, _ := m.Merge(hints); best != hint(true, 1, 2) {
		t.Error(best)
	}
	m.Options.PreferClosest = false
	if best, _ := m.Merge(hints); best != hint(true, 0, 1) {
		t.Error(best)
	}
}

func TestParseOptions(t *testing.T) {
	for name, test := range map[string]struct {
		options map[string]string
		want    Options
		err     string
	}{
		"none":          {nil, Options{NodesMax: 8}, ""},
		"all":           {map[string]string{"prefer-closest-numa-nodes": "true", "max-allowable-numa-nodes": "12"}, Options{true, 12}, ""},
		"too few":       {map[string]string{"max-allowable-numa-nodes": "7"}, Options{}, `the minimum value of "max-allowable-numa-nodes" should not be less than 8`},
		"no number":     {map[string]string{"max-allowable-numa-nodes": "x"}, Options{}, `unable to convert policy option to integer "max-allowable-numa-nodes": strconv.Atoi: parsing "x": invalid syntax`},
		"no truth":      {map[string]string{"prefer-closest-numa-nodes": "x"}, Options{}, `bad value for option "prefer-closest-numa-nodes": strconv.ParseBool: parsing "x": invalid syntax`},
		"not upstreams": {map[string]string{"x": "true"}, Options{}, `unknown Topology Manager Policy option: "x"`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := ParseOptions(test.options)
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Error(err)
				}
			} else if err != nil || got != test.want {
				t.Error(got, err)
			}
		})
	}
}

func TestTooManyNodes(t *testing.T) {
	m := Manager{Policy: Restricted, Nodes: NodesOf(0, 1, 2, 3, 4, 5, 6, 7, 8), Options: Options{NodesMax: 8}}
	if err := m.Check(); err == nil || err.Error() != "unsupported on machines with more than 8 NUMA Nodes" {
		t.Error(err)
	}
	m.Options.NodesMax = 9
	if err := m.Check(); err != nil {
		t.Error(err)
	}
}

func TestWhatAMachineTells(t *testing.T) {
	sys := fstest.MapFS{
		"devices/system/node/node0/cpulist":  {Data: []byte("0-1\n")},
		"devices/system/node/node0/distance": {Data: []byte("10 21\n")},
		"devices/system/node/node2/cpulist":  {Data: []byte("\n")},
		"devices/system/node/node2/distance": {Data: []byte("21 10\n")},
	}
	nodes, err := ReadNodes(sys)
	if err != nil || len(nodes) != 2 || !nodes[0].Equals(cpuset.New(0, 1)) || !nodes[2].IsEmpty() {
		t.Error(nodes, err)
	}
	distances, err := ReadDistances(sys)
	if diff := cmp.Diff(map[int]map[int]int{0: {0: 10, 2: 21}, 2: {0: 21, 2: 10}}, distances); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if nodes, err := ReadNodes(fstest.MapFS{}); err != nil || len(nodes) != 1 {
		t.Error(nodes, err)
	}
}
