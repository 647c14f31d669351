package upgrade

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/setpoint-io/setpoint/cmd/setpoint/clusterstatus"
)

// kubeletMinorsOlder is by how many minor versions a kubelet may be older than its server.
const kubeletMinorsOlder = 3

// setpointMark is in the version of Setpoint's kubelets, before the release: v1.37.2+setpoint.0.1.0.
const setpointMark = "+setpoint"

// lowestLevel holds any cluster where it is: a level never falls.
const lowestLevel = 1

// Release is what a program is.
type Release struct {
	Setpoint   string `json:"setpoint"`
	Kubernetes string `json:"kubernetes"`
	// Level is the highest feature level that it can apply.
	Level uint64 `json:"level"`
}

// Plan is how a cluster comes to a release.
type Plan struct {
	To    Release `json:"to"`
	Parts []Part  `json:"parts"`
	// Level is what the cluster has reached, 0 if its servers are of a release that does not tell. Held is where a server holds it, 0 if
	// none does.
	Level uint64 `json:"level"`
	Held  uint64 `json:"held,omitempty"`
	// Against is what has to be mended first; Steps are what to do then.
	Against []string `json:"against,omitempty"`
	Steps   []string `json:"steps,omitempty"`
}

// Part is a server or a node.
type Part struct {
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Setpoint   string `json:"setpoint,omitempty"`
	Kubernetes string `json:"kubernetes,omitempty"`
	// Level is the highest feature level that a server can apply.
	Level  uint64 `json:"level,omitempty"`
	Leader bool   `json:"leader,omitempty"`
	// Current: it has the release already, or is a node of another kubelet, which is upgraded by its own means.
	Current bool `json:"current"`
}

// Of plans for what is known of a cluster. Nodes of other kubelets than Setpoint's are upgraded by their own means.
func Of(to Release, report clusterstatus.Report, nodes []corev1.Node) Plan {
	p := Plan{To: to}
	for _, s := range report.Servers {
		p.addServer(s)
	}
	if p.Held >= to.Level {
		p.Held = 0 // it keeps the cluster from nothing that this release has
	} else if p.Held != 0 {
		p.Held = max(p.Held, p.Level)
	}
	slices.SortStableFunc(p.Parts, func(a, b Part) int { return cmp.Compare(rank(a), rank(b)) })
	for i := range nodes {
		p.addNode(&nodes[i])
	}
	if report.Verdict.PersonNeeded {
		p.Against = append(p.Against, report.Verdict.Text)
	}
	if to.Level < p.Level {
		p.Against = append(p.Against, fmt.Sprintf(
			"the cluster has reached feature level %d, and this release knows up to %d: it cannot be gone back to; restore a backup of its time", p.Level, to.Level))
	}
	p.Steps = p.steps()
	return p
}

// rank puts the leader last.
func rank(p Part) int {
	if p.Leader {
		return 1
	}
	return 0
}

func (p *Plan) addServer(s clusterstatus.Server) {
	part := Part{Kind: "server", Name: s.Name}
	if status := s.Status; status != nil {
		part.Setpoint, part.Kubernetes, part.Level = status.Version, status.KubernetesVersion, status.HighestLevel
		part.Leader = status.Leader == s.Name
		part.Current = part.Setpoint == p.To.Setpoint && part.Kubernetes == p.To.Kubernetes && part.Level == p.To.Level
		p.Level = max(p.Level, status.FeatureLevel)
		if held := status.HeldLevel; held != 0 && (p.Held == 0 || held < p.Held) {
			p.Held = held
		}
	}
	p.Parts = append(p.Parts, part)
}

func (p *Plan) addNode(node *corev1.Node) {
	kubelet := node.Status.NodeInfo.KubeletVersion
	part := Part{Kind: "node", Name: node.Name}
	kubernetes, release, ours := strings.Cut(kubelet, setpointMark)
	part.Kubernetes, part.Setpoint = kubernetes, strings.TrimPrefix(release, ".")
	part.Current = !ours || kubernetes == p.To.Kubernetes && part.Setpoint == p.To.Setpoint
	p.Parts = append(p.Parts, part)
	if why := skew(kubelet, p.To.Kubernetes); why != "" {
		p.Against = append(p.Against, fmt.Sprintf("node %s: its kubelet %s %s", node.Name, kubelet, why))
	}
}

// skew says what is wrong with a kubelet beside a server; nothing is said of what is no version.
func skew(kubelet, server string) string {
	k, kubeletErr := version.ParseSemantic(kubelet)
	s, serverErr := version.ParseSemantic(server)
	switch {
	case kubeletErr != nil || serverErr != nil:
		return ""
	case k.Major() != s.Major() || k.Minor() > s.Minor():
		return fmt.Sprintf("would be newer than the servers' %s", server)
	case s.Minor()-k.Minor() > kubeletMinorsOlder:
		return fmt.Sprintf("would be more than %d minor versions older than the servers' %s: upgrade it first", kubeletMinorsOlder, server)
	}
	return ""
}

// steps are those for the parts that do not have the release.
func (p *Plan) steps() (steps []string) {
	servers := p.others("server")
	for _, name := range servers {
		steps = append(steps, fmt.Sprintf("server %s: replace the binary, restart its service, and go on when its /readyz says ok", name))
	}
	if nodes := p.others("node"); len(nodes) > 0 {
		steps = append(steps, fmt.Sprintf("%s: replace the binary and restart the agent; pods run on", countNodes(nodes)))
	}
	if len(servers) > 0 {
		steps = append([]string{"make a backup: setpoint backup create FILE"}, steps...)
	}
	if p.To.Level > p.Level {
		steps = append(steps, p.lastStep())
	}
	return steps
}

// lastStep is about the formats of the new release, after which there is no way back.
func (p *Plan) lastStep() string {
	if p.Held != 0 {
		return fmt.Sprintf("the cluster is held at feature level %d, so all servers can still go back: when nobody wants that any more, restart the servers without --hold-feature-level, and it rises to %d",
			p.Held, p.To.Level)
	}
	return fmt.Sprintf("the feature level rises %sto %d by itself when the last server has the release, and no server can go back then: to keep that way open, start one with --hold-feature-level %d",
		p.from(), p.To.Level, max(p.Level, lowestLevel))
}

// from tells the level that was reached, if that is known.
func (p *Plan) from() string {
	if p.Level == 0 {
		return ""
	}
	return fmt.Sprintf("from %d ", p.Level)
}

// others are the names of a kind's parts that do not have the release.
func (p *Plan) others(kind string) (names []string) {
	for _, part := range p.Parts {
		if part.Kind == kind && !part.Current {
			names = append(names, part.Name)
		}
	}
	return names
}

func countNodes(names []string) string {
	if len(names) == 1 {
		return "node " + names[0]
	}
	return fmt.Sprintf("%d nodes, in any order", len(names))
}
