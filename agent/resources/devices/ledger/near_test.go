package ledger

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/agent/resources/topology"
)

// placed are devices like "a@0 b@1 c": a is at NUMA node 0, c has no place.
func placed(text string) map[string]Device {
	out := map[string]Device{}
	for _, one := range strings.Fields(text) {
		id, at, _ := strings.Cut(one, "@")
		d := Device{ID: id, Healthy: true}
		for _, node := range at {
			d.NUMA = append(d.NUMA, int64(node-'0'))
		}
		out[id] = d
	}
	return out
}

func TestNear(t *testing.T) {
	for name, test := range map[string]struct {
		known     string
		near      topology.Nodes
		count     int
		preferred string
		want      string
	}{
		"no nodes":                  {"a@0 b@1 c", 0, 1, "", "a"},
		"there":                     {"a@0 b@1 c@1", topology.NodesOf(1), 1, "", "b"},
		"the preferred one there":   {"a@0 b@1 c@1", topology.NodesOf(1), 1, "a c", "c"},
		"all of them there":         {"a@0 b@1 c@1", topology.NodesOf(1), 2, "a", "b c"},
		"all there and one more":    {"a@0 b@1 c d@0", topology.NodesOf(1), 2, "d", "b d"},
		"without a place last":      {"a b@0 c@1", topology.NodesOf(1), 2, "", "b c"},
		"at several nodes":          {"a@0 b@01", topology.NodesOf(1), 1, "", "b"},
		"the plugin names no nodes": {"a b", topology.NodesOf(1), 1, "", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			choice, err := New().Choose(Want{podOf("p", "m"), "m", gpu, test.count}, placed(test.known))
			if err != nil {
				t.Fatal(err)
			}
			s := Share{Devices: choice.Near(test.near).Take(strings.Fields(test.preferred))}
			if got := strings.Join(s.IDs(), " "); got != test.want {
				t.Errorf("%s, not %s", got, test.want)
			}
		})
	}
}

func TestHints(t *testing.T) {
	hint := func(preferred bool, ids ...int) topology.Hint {
		return topology.Hint{Nodes: topology.NodesOf(ids...), Preferred: preferred}
	}
	for name, test := range map[string]struct {
		known string
		had   map[string]string // by containers of the same pod
		of    string
		count int
		want  []topology.Hint
	}{
		"no places":       {"a b", nil, "m", 1, nil},
		"one":             {"a@0 b@1", nil, "m", 1, []topology.Hint{hint(true, 0), hint(true, 1), hint(false, 0, 1)}},
		"two":             {"a@0 b@1", nil, "m", 2, []topology.Hint{hint(true, 0, 1)}},
		"too many":        {"a@0 b@1", nil, "m", 3, topology.Impossible()},
		"has it":          {"a@0 b@1", map[string]string{"m": "b"}, "m", 1, []topology.Hint{hint(true, 1), hint(false, 0, 1)}},
		"has another":     {"a@0 b@1", map[string]string{"m": "b"}, "m", 2, topology.Impossible()},
		"handed on":       {"a@0 b@1 c@1", map[string]string{"i": "b"}, "m", 1, []topology.Hint{hint(true, 1), hint(false, 0, 1)}},
		"the whole pod":   {"a@0 b@1", nil, "", 1, []topology.Hint{hint(true, 0), hint(true, 1), hint(false, 0, 1)}},
		"unknown places":  {"a@7", nil, "m", 1, topology.Impossible()},
		"nodes that have": {"a@1", nil, "m", 1, []topology.Hint{hint(true, 1)}},
	} {
		t.Run(name, func(t *testing.T) {
			l, known := New(), placed(test.known)
			for container, id := range test.had {
				l.Put(Share{Key: Key{"p", container, gpu}, Devices: []Device{known[id]}})
			}
			got := l.Hints(Want{podOf("p", "i:i m"), test.of, gpu, test.count}, known, topology.NodesOf(0, 1))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
