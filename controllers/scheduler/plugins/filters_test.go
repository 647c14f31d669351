package plugins

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
)

func TestNodeName(t *testing.T) {
	named := func(p *corev1.Pod) { p.Spec.NodeName = "n1" }
	wantTexts(t, judge(NodeName{}, pod(), node("n2")), nil)
	wantTexts(t, judge(NodeName{}, pod(named), node("n1")), nil)
	wantTexts(t, judge(NodeName{}, pod(named), node("n2")),
		[]string{"node(s) didn't match the requested node name", "the pod asked for this node by name"})
}

func TestNodeUnschedulable(t *testing.T) {
	cordon := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	wantTexts(t, judge(NodeUnschedulable{}, pod(), node("n")), nil)
	wantTexts(t, judge(NodeUnschedulable{}, pod(), node("n", cordon)), []string{"node(s) were unschedulable", "it were uncordoned"})
	everything := tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})
	wantTexts(t, judge(NodeUnschedulable{}, pod(everything), node("n", cordon)), nil)
}

func TestTaintTolerationFilter(t *testing.T) {
	gpu := node("n", taint("dedicated", "gpu", corev1.TaintEffectNoSchedule))
	rejected := []string{"node(s) had untolerated taint(s)", "the pod tolerated taint dedicated=gpu:NoSchedule"}
	tests := []struct {
		name string
		pod  *plugin.Pod
		node *plugin.Node
		want []string
	}{
		{"no toleration", pod(), gpu, rejected},
		{"equal", pod(tolerating(corev1.Toleration{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoSchedule})), gpu, nil},
		{"other value", pod(tolerating(corev1.Toleration{Key: "dedicated", Value: "db"})), gpu, rejected},
		{"exists", pod(tolerating(corev1.Toleration{Key: "dedicated", Operator: corev1.TolerationOpExists})), gpu, nil},
		{"everything", pod(tolerating(corev1.Toleration{Operator: corev1.TolerationOpExists})), gpu, nil},
		{"other effect", pod(tolerating(corev1.Toleration{Key: "dedicated", Value: "gpu", Effect: corev1.TaintEffectNoExecute})), gpu, rejected},
		{"preferred only", pod(), node("n", taint("k", "v", corev1.TaintEffectPreferNoSchedule)), nil},
		{
			"second taint", pod(tolerating(corev1.Toleration{Key: "a", Operator: corev1.TolerationOpExists})),
			node("n", taint("a", "", corev1.TaintEffectNoSchedule), taint("b", "", corev1.TaintEffectNoExecute)),
			[]string{"node(s) had untolerated taint(s)", "the pod tolerated taint b:NoExecute"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { wantTexts(t, judge(TaintToleration{}, tt.pod, tt.node), tt.want) })
	}
}

func required(requirements ...corev1.NodeSelectorRequirement) corev1.Affinity {
	return corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: requirements}},
	}}}
}

func TestNodeAffinityFilter(t *testing.T) {
	const reason = "node(s) didn't match Pod's node affinity/selector"
	selects := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"disk": "ssd", "arch": "arm64"} }
	in := affinity(required(corev1.NodeSelectorRequirement{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a", "b"}}))
	newer := affinity(required(corev1.NodeSelectorRequirement{Key: "generation", Operator: corev1.NodeSelectorOpGt, Values: []string{"3"}}))
	tests := []struct {
		name string
		pod  *plugin.Pod
		node *plugin.Node
		want []string
	}{
		{"selector met", pod(selects), node("n", label("disk", "ssd"), label("arch", "arm64")), nil},
		{"one label missing", pod(selects), node("n", label("disk", "ssd")), []string{reason, "it had label arch=arm64"}},
		{"both missing", pod(selects), node("n", label("disk", "hdd")), []string{reason, "it had label arch=arm64,disk=ssd"}},
		{"in", pod(in), node("n", label("zone", "b")), nil},
		{"not in", pod(in), node("n", label("zone", "c")), []string{reason, "it matched the pod's required node affinity"}},
		{"greater", pod(newer), node("n", label("generation", "4")), nil},
		{"not greater", pod(newer), node("n", label("generation", "3")), []string{reason, "it matched the pod's required node affinity"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { wantTexts(t, judge(NodeAffinity{}, tt.pod, tt.node), tt.want) })
	}
}

func TestNodePorts(t *testing.T) {
	const reason = "node(s) didn't have free ports for the requested pod ports"
	tests := []struct {
		name       string
		have, want podOption
		rejected   []string
	}{
		{"same", hostPort("", "", 80), hostPort("", corev1.ProtocolTCP, 80), []string{reason, "host port 80/TCP were free"}},
		{"other port", hostPort("", "", 80), hostPort("", "", 81), nil},
		{"other protocol", hostPort("", corev1.ProtocolUDP, 80), hostPort("", corev1.ProtocolTCP, 80), nil},
		{"two addresses", hostPort("10.0.0.1", "", 80), hostPort("10.0.0.2", "", 80), nil},
		{"wildcard taken", hostPort("0.0.0.0", "", 80), hostPort("10.0.0.2", "", 80), []string{reason, "host port 80/TCP were free"}},
		{"wildcard wanted", hostPort("10.0.0.1", "", 80), hostPort("", "", 80), []string{reason, "host port 80/TCP were free"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n, first := node("n"), pod(tt.have)
			n.AddPod(first)
			wantTexts(t, judge(NodePorts{}, pod(tt.want), n), tt.rejected)
			n.RemovePod(first)
			wantTexts(t, judge(NodePorts{}, pod(tt.want), n), nil)
		})
	}
}

func TestNodeResourcesFitFilter(t *testing.T) {
	small := func() *plugin.Node {
		return node("n", allocatable("cpu", "1", "memory", "1Gi", "ephemeral-storage", "10Gi", "pods", "2", "example.com/gpu", "1"))
	}
	tests := []struct {
		name string
		used []*plugin.Pod
		pod  *plugin.Pod
		want []string
	}{
		{name: "fits exactly", pod: pod(requests("cpu", "1", "memory", "1Gi", "example.com/gpu", "1"))},
		{name: "cpu", used: []*plugin.Pod{pod(requests("cpu", "700m"))}, pod: pod(requests("cpu", "500m")), want: []string{"Insufficient cpu", "200m cpu were freed"}},
		{name: "memory", used: []*plugin.Pod{pod(requests("memory", "900Mi"))}, pod: pod(requests("memory", "200Mi")), want: []string{"Insufficient memory", "76Mi memory were freed"}},
		{name: "ephemeral storage", pod: pod(requests("ephemeral-storage", "11Gi")), want: []string{"Insufficient ephemeral-storage", "the pod requested at most 10Gi ephemeral-storage"}},
		{
			name: "extended",
			used: []*plugin.Pod{pod(requests("example.com/gpu", "1"))},
			pod:  pod(requests("example.com/gpu", "1")),
			want: []string{"Insufficient example.com/gpu", "1 example.com/gpu were freed"},
		},
		{name: "unknown extended", pod: pod(requests("example.com/fpga", "1")), want: []string{"Insufficient example.com/fpga", "the pod requested at most 0 example.com/fpga"}},
		{name: "too many pods", used: []*plugin.Pod{pod(), pod()}, pod: pod(), want: []string{"Too many pods", "it ran fewer pods"}},
		{name: "all at once", pod: pod(requests("cpu", "2", "memory", "2Gi")), want: []string{
			"Insufficient cpu", "Insufficient memory", "the pod requested at most 1 cpu", "the pod requested at most 1Gi memory"}},
		{name: "init container counts by its maximum", pod: pod(requests("cpu", "500m"), func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: list("cpu", "1500m")}}}
		}), want: []string{"Insufficient cpu", "the pod requested at most 1 cpu"}},
		{name: "overhead counts", pod: pod(requests("cpu", "900m"), func(p *corev1.Pod) { p.Spec.Overhead = list("cpu", "200m") }),
			want: []string{"Insufficient cpu", "the pod requested at most 1 cpu"}},
		{name: "a node over its limit still takes pods that ask for nothing", used: []*plugin.Pod{pod(requests("cpu", "2"))}, pod: pod()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n := small()
			for _, p := range tt.used {
				n.AddPod(p)
			}
			wantTexts(t, judge(NodeResourcesFit{}, tt.pod, n), tt.want)
		})
	}
}

func TestNodeDeclaredFeatures(t *testing.T) {
	restarts := func(p *corev1.Pod) {
		p.Spec.Containers[0].RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
	}
	declares := func(n *corev1.Node) {
		n.Status.DeclaredFeatures = []string{"SomethingNew", "RestartAllContainersOnContainerExits"}
	}
	wantTexts(t, judge(NodeDeclaredFeatures{}, pod(), node("n")), nil)
	wantTexts(t, judge(NodeDeclaredFeatures{}, pod(restarts), node("n", declares)), nil)
	wantTexts(t, judge(NodeDeclaredFeatures{}, pod(restarts), node("n")),
		[]string{"node(s) didn't match Pod's required features", "it declared all features that the pod asks for"})
}
