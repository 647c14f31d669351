package plugins

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/views"
)

// fixture builds nodes and pods in the few words a table needs.

type nodeOption func(*corev1.Node)

func node(name string, options ...nodeOption) *plugin.Node {
	object := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}},
		Status:     corev1.NodeStatus{Allocatable: list("cpu", "4", "memory", "8Gi", "pods", "110")},
	}
	for _, option := range options {
		option(object)
	}
	n := plugin.NewNode(name, 0)
	n.SetNode(object)
	return n
}

func label(key, value string) nodeOption {
	return func(n *corev1.Node) { n.Labels[key] = value }
}

func taint(key, value string, effect corev1.TaintEffect) nodeOption {
	return func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: effect})
	}
}

func allocatable(pairs ...string) nodeOption {
	return func(n *corev1.Node) { n.Status.Allocatable = list(pairs...) }
}

func image(name string, bytes int64) nodeOption {
	return func(n *corev1.Node) {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{name}, SizeBytes: bytes})
	}
}

func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return l
}

type podOption func(*corev1.Pod)

func pod(options ...podOption) *plugin.Pod {
	object := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "web"}}},
	}
	for _, option := range options {
		option(object)
	}
	return plugin.NewPod(object)
}

func requests(pairs ...string) podOption {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list(pairs...) }
}

func labelled(key, value string) podOption {
	return func(p *corev1.Pod) { p.Labels = labels.Merge(p.Labels, labels.Set{key: value}) }
}

func tolerating(t corev1.Toleration) podOption {
	return func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, t) }
}

func hostPort(ip string, protocol corev1.Protocol, port int32) podOption {
	return func(p *corev1.Pod) {
		c := &p.Spec.Containers[0]
		c.Ports = append(c.Ports, corev1.ContainerPort{HostIP: ip, Protocol: protocol, HostPort: port, ContainerPort: port})
	}
}

func affinity(a corev1.Affinity) podOption {
	return func(p *corev1.Pod) { p.Spec.Affinity = &a }
}

func spread(c corev1.TopologySpreadConstraint) podOption {
	return func(p *corev1.Pod) { p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c) }
}

// judge gives the reasons and remedies of a filter; nil if the node fits.
func judge(f plugin.Filter, p *plugin.Pod, n *plugin.Node) []string {
	check := f.Filter(p)
	if check == nil {
		return nil
	}
	return texts(check(n))
}

func texts(r *plugin.Rejection) []string {
	if r == nil {
		return nil
	}
	return append(append([]string{}, r.Reasons...), r.Texts()...)
}

// counted is a survey with the views that it asks.
type counted struct {
	plugin.Survey
	views *views.Views
}

// survey counts the nodes in their order, with their pods, and gives the survey.
func survey(s plugin.Surveyor, p *plugin.Pod, world plugin.World, nodes []*plugin.Node) *counted {
	if world.NamespaceLabels == nil {
		world.NamespaceLabels = func(string) labels.Set { return nil }
	}
	world.Views = views.New(world.NamespaceLabels)
	c := &counted{views: world.Views, Survey: s.Survey(p, world)}
	for slot, n := range nodes {
		n.Slot = slot
		world.Views.SetNode(slot, n.Node)
		for _, other := range n.Pods {
			c.count(n, other)
		}
	}
	return c
}

// count counts one more pod on the node.
func (c *counted) count(n *plugin.Node, p *plugin.Pod) {
	c.views.Add(n.Slot, p.Member)
}

func wantTexts(t *testing.T, got, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func wantScores(t *testing.T, got, want []int64) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scores (-want +got)\n%s", diff)
	}
}

func rawScores(s plugin.Score, p *plugin.Pod, nodes ...*plugin.Node) []int64 {
	score := s.Score(p)
	if score == nil {
		return nil
	}
	var scores []int64
	for _, n := range nodes {
		scores = append(scores, score(n))
	}
	s.Normalize(scores)
	return scores
}

func TestEveryPluginHasAPointAndAName(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range All() {
		_, filter := p.(plugin.Filter)
		_, score := p.(plugin.Score)
		_, surveyor := p.(plugin.Surveyor)
		if !filter && !score && !surveyor {
			t.Errorf("%s implements no extension point", p.Name())
		}
		if p.Name() == "" || seen[p.Name()] {
			t.Errorf("name %q is empty or taken", p.Name())
		}
		seen[p.Name()] = true
	}
}
