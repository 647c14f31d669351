package upgrade

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/cmd/setpoint/clusterstatus"
	"github.com/setpoint-io/setpoint/server/admin"
)

// server is one that answers; b leads.
func server(name, release string, highest, reached, held uint64) clusterstatus.Server {
	return clusterstatus.Server{Name: name, Status: &admin.ServerStatus{
		Name: name, Leader: "b", Version: release, KubernetesVersion: "v1.37.1", FeatureLevel: reached, HighestLevel: highest, HeldLevel: held,
	}}
}

func node(name, kubelet string) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{KubeletVersion: kubelet}}}
}

var (
	old = []clusterstatus.Server{server("a", "0.1.0", 3, 3, 0), server("b", "0.1.0", 3, 3, 0), server("c", "0.1.0", 3, 3, 0)}
	// to is a release whose formats are newer.
	to = Release{Setpoint: "0.2.0", Kubernetes: "v1.37.1", Level: 4}
)

func TestSteps(t *testing.T) {
	for _, c := range []struct {
		what    string
		to      Release
		servers []clusterstatus.Server
		nodes   []corev1.Node
		want    []string // the beginnings of the steps
	}{
		{"the leader last, then the node", to, old, []corev1.Node{node("n", "v1.36.0+setpoint")},
			[]string{"make a backup", "server a", "server c", "server b", "node n:", "the feature level rises from 3 to 4 by itself"}},
		{"half-way", to, []clusterstatus.Server{server("a", "0.2.0", 4, 3, 0), old[1], server("c", "0.2.0", 4, 3, 0)}, nil,
			[]string{"make a backup", "server b", "the feature level rises from 3 to 4 by itself"}},
		{"a release that tells nothing of itself", to, []clusterstatus.Server{server("a", "", 0, 0, 0)}, nil,
			[]string{"make a backup", "server a", "the feature level rises to 4 by itself"}},
		{"held", to, []clusterstatus.Server{server("a", "0.2.0", 4, 3, 3)}, nil, []string{"the cluster is held at feature level 3"}},
		{"a hold that holds nothing", to, []clusterstatus.Server{server("a", "0.2.0", 4, 3, 4)}, nil, []string{"the feature level rises from 3"}},
		{"all is done", to, []clusterstatus.Server{server("a", "0.2.0", 4, 4, 0)}, []corev1.Node{node("n", "v1.37.1+setpoint.0.2.0"), node("other", "v1.36.3")}, nil},
		{"the same formats", Release{"0.1.1", "v1.37.1", 3}, old[:1], nil, []string{"make a backup", "server a"}},
		{"many nodes", Release{"0.1.0", "v1.37.1", 3}, old, []corev1.Node{node("n", "v1.37.1+setpoint.0.0.9"), node("m", "v1.36.1+setpoint.0.1.0")},
			[]string{"2 nodes, in any order"}},
	} {
		p := Of(c.to, clusterstatus.Report{Servers: c.servers}, c.nodes)
		if len(p.Against) > 0 || p.Err() != nil {
			t.Errorf("%s: against it: %q", c.what, p.Against)
		}
		if len(p.Steps) != len(c.want) {
			t.Errorf("%s: %d steps, not %d: %q", c.what, len(p.Steps), len(c.want), p.Steps)
			continue
		}
		for i, step := range p.Steps {
			if !strings.HasPrefix(step, c.want[i]) {
				t.Errorf("%s: step %d is %q, not %q", c.what, i, step, c.want[i])
			}
		}
	}
}

func TestWhatSpeaksAgainstIt(t *testing.T) {
	down := clusterstatus.Report{Servers: old, Verdict: clusterstatus.Verdict{Text: "1 of 3 servers is down", PersonNeeded: true}}
	for _, c := range []struct {
		what   string
		to     Release
		report clusterstatus.Report
		node   corev1.Node
		want   string
	}{
		{"somebody is needed", to, down, node("n", "v1.37.1"), "1 of 3 servers is down"},
		{"back beyond a level", Release{"0.0.9", "v1.37.1", 2}, clusterstatus.Report{Servers: old}, node("n", "v1.37.1"), "cannot be gone back to"},
		{"a kubelet that is too old", to, clusterstatus.Report{Servers: old}, node("n", "v1.33.9"), "node n: its kubelet v1.33.9 would be more than 3"},
		{"a newer kubelet", to, clusterstatus.Report{Servers: old}, node("n", "v1.38.0"), "would be newer"},
	} {
		p := Of(c.to, c.report, []corev1.Node{c.node})
		if len(p.Against) != 1 || !strings.Contains(p.Against[0], c.want) || p.Err() == nil {
			t.Errorf("%s: %q, not %q", c.what, p.Against, c.want)
		}
	}
	for _, fine := range []string{"v1.34.0", "v1.37.9", "v1.36.1-gke.100", "", "unknown"} {
		if p := Of(to, clusterstatus.Report{Servers: old}, []corev1.Node{node("n", fine)}); p.Err() != nil {
			t.Errorf("a kubelet %q: %v", fine, p.Err())
		}
	}
}
