package plugin

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func amounts(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func container(requests corev1.ResourceList) corev1.Container {
	return corev1.Container{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}
}

func TestPodRequests(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	sidecar := container(amounts("50m", "64Mi"))
	sidecar.RestartPolicy = &always
	tests := []struct {
		name         string
		spec         corev1.PodSpec
		want, scored Resources
	}{
		{"nothing asked for", corev1.PodSpec{Containers: []corev1.Container{container(nil), container(nil)}},
			Resources{Pods: 1}, Resources{MilliCPU: 200, Memory: 400 << 20}},
		{"sum of containers", corev1.PodSpec{Containers: []corev1.Container{container(amounts("1", "1Gi")), container(amounts("500m", "0"))}},
			Resources{MilliCPU: 1500, Memory: 1 << 30, Pods: 1}, Resources{MilliCPU: 1500, Memory: 1 << 30}},
		{"largest init container", corev1.PodSpec{InitContainers: []corev1.Container{container(amounts("2", "0"))}, Containers: []corev1.Container{container(amounts("1", "1Gi"))}},
			Resources{MilliCPU: 2000, Memory: 1 << 30, Pods: 1}, Resources{MilliCPU: 2000, Memory: 1 << 30}},
		{"sidecar adds up", corev1.PodSpec{InitContainers: []corev1.Container{sidecar}, Containers: []corev1.Container{container(amounts("1", "1Gi"))}},
			Resources{MilliCPU: 1050, Memory: 1<<30 + 64<<20, Pods: 1}, Resources{MilliCPU: 1050, Memory: 1<<30 + 64<<20}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := NewPod(&corev1.Pod{Spec: tt.spec})
			if diff := cmp.Diff([]Resources{tt.want, tt.scored}, []Resources{p.Requests, p.Scored}); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestNodeCountsAndForgets(t *testing.T) {
	n := NewNode("n", 0)
	n.SetNode(&corev1.Node{Status: corev1.NodeStatus{Allocatable: amounts("4", "8Gi")}})
	object := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container(amounts("1", "1Gi"))}}}
	object.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
	first, second := NewPod(object), NewPod(&corev1.Pod{})
	n.AddPod(first)
	n.AddPod(second)
	trial := n.Clone()
	trial.RemovePod(first)
	if _, taken := trial.TakenPort(HostPort{anyAddress, corev1.ProtocolTCP, 80}); taken || trial.Requested.MilliCPU != 0 || len(trial.Pods) != 1 {
		t.Errorf("the copy still counts the pod: %+v", trial.Requested)
	}
	if _, taken := n.TakenPort(HostPort{anyAddress, corev1.ProtocolTCP, 80}); !taken || n.Requested.MilliCPU != 1000 || len(n.Pods) != 2 {
		t.Errorf("changing the copy changed the node: %+v", n.Requested)
	}
	n.RemovePod(first)
	n.RemovePod(second)
	if !n.Requested.Equal(Resources{}) || len(n.Pods) != 0 {
		t.Errorf("an empty node counts %+v", n.Requested)
	}
}

func TestPinnedTo(t *testing.T) {
	named := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}}
	labelled := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}}
	for _, tt := range []struct {
		name  string
		terms []corev1.NodeSelectorTerm
		want  []string
	}{
		{"by name", []corev1.NodeSelectorTerm{named}, []string{"a"}},
		{"by label", []corev1.NodeSelectorTerm{labelled}, nil},
		{"by name or label", []corev1.NodeSelectorTerm{named, labelled}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := NewPod(&corev1.Pod{Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: tt.terms}}}}})
			if diff := cmp.Diff(tt.want, p.PinnedTo()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestNormalize(t *testing.T) {
	for _, tt := range []struct {
		name     string
		in, want []int64
		reverse  bool
	}{
		{"scaled", []int64{0, 5, 10}, []int64{0, 50, 100}, false},
		{"reversed", []int64{0, 5, 10}, []int64{100, 50, 0}, true},
		{"all zero", []int64{0, 0}, []int64{0, 0}, false},
		{"all zero reversed", []int64{0, 0}, []int64{100, 100}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			Normalize(tt.in, tt.reverse)
			if diff := cmp.Diff(tt.want, tt.in); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestTermWithBrokenSelectorMatchesNothing(t *testing.T) {
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Sounds"}}}
	if ParseSelector(broken).Matches(nil) || ParseSelector(nil).Matches(nil) {
		t.Error("a selector that says nothing matches")
	}
}
