package admission

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/inplacepodresize"
	"k8s.io/component-helpers/nodedeclaredfeatures/features/restartallcontainers"
)

func TestHugePagesThatTheNodeHasNot(t *testing.T) {
	pages := func(name corev1.ResourceName, amount string) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse(amount)}},
		}}}}
	}
	node := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), "hugepages-2Mi": resource.MustParse("6Mi")}
	others := []*corev1.Pod{pages("hugepages-2Mi", "4Mi")}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		node corev1.ResourceList
		want string
	}{
		"the last page":  {pages("hugepages-2Mi", "2Mi"), node, ""},
		"one more":       {pages("hugepages-2Mi", "4Mi"), node, "OutOfhugepages-2Mi"},
		"another size":   {pages("hugepages-1Gi", "1Gi"), node, "OutOfhugepages-1Gi"},
		"not known yet":  {pages("hugepages-1Gi", "1Gi"), nil, ""},
		"not its matter": {pages("example.com/a", "1"), node, ""},
	} {
		got := ""
		if why := (Node{Others: others, Allocatable: tc.node}).Room(tc.pod); why != nil {
			got = why.Reason
		}
		if got != tc.want {
			t.Errorf("%s: %q, not %q", name, got, tc.want)
		}
	}
}

func TestSamePort(t *testing.T) {
	for _, c := range []struct {
		p, q corev1.ContainerPort
		want bool
	}{
		{corev1.ContainerPort{HostPort: 80}, corev1.ContainerPort{HostPort: 80, Protocol: corev1.ProtocolTCP, HostIP: "10.0.0.1"}, true},
		{corev1.ContainerPort{HostPort: 80, HostIP: "0.0.0.0"}, corev1.ContainerPort{HostPort: 80, HostIP: "10.0.0.1"}, true},
		{corev1.ContainerPort{HostPort: 80, HostIP: "10.0.0.2"}, corev1.ContainerPort{HostPort: 80, HostIP: "10.0.0.1"}, false},
		{corev1.ContainerPort{HostPort: 80}, corev1.ContainerPort{HostPort: 81}, false},
		{corev1.ContainerPort{HostPort: 80}, corev1.ContainerPort{HostPort: 80, Protocol: corev1.ProtocolSCTP}, false},
	} {
		if samePort(&c.p, &c.q) != c.want || samePort(&c.q, &c.p) != c.want {
			t.Errorf("%+v %+v: want %v", c.p, c.q, c.want)
		}
	}
}

// restarting asks for a feature: its containers restart together.
func restarting() *corev1.Pod {
	rule := corev1.ContainerRestartRule{Action: corev1.ContainerRestartRuleActionRestartAllContainers}
	return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{RestartPolicyRules: []corev1.ContainerRestartRule{rule}}}}}
}

func TestFeaturesThatTheNodeDoesNotDeclare(t *testing.T) {
	for name, c := range map[string]struct {
		features []string
		pod      *corev1.Pod
		want     string
	}{
		"declared":       {[]string{restartallcontainers.RestartAllContainersOnContainerExits}, restarting(), ""},
		"not declared":   {[]string{}, restarting(), "Pod requires node features that are not available: RestartAllContainersOnContainerExits"},
		"nothing wanted": {[]string{}, &corev1.Pod{}, ""},
		"not judged":     {nil, restarting(), ""},
	} {
		why := Node{Features: c.features}.Judge(c.pod)
		switch {
		case c.want == "" && why != nil:
			t.Errorf("%s: %+v", name, why)
		case c.want != "" && (why == nil || why.Reason != "PodFeatureUnsupported" || why.Message != c.want):
			t.Errorf("%s: %+v", name, why)
		}
	}
}

func TestChangesThatAskForFeatures(t *testing.T) {
	of := func(memory string) *corev1.Pod {
		limits := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
		return &corev1.Pod{Spec: corev1.PodSpec{Resources: &corev1.ResourceRequirements{Requests: limits, Limits: limits}}}
	}
	if got := (Node{Features: []string{}}).Update(of("1Gi"), of("2Gi")); !strings.HasPrefix(got, "Pod requires node features that are not available: InPlacePodLevel") {
		t.Errorf("%q", got)
	}
	able := Node{Features: []string{inplacepodresize.IPPRPodLevelResourcesFeatureGate}}
	if got := able.Update(of("1Gi"), of("2Gi")); got != "" {
		t.Errorf("declared: %q", got)
	}
	if got := (Node{Features: []string{}}).Update(of("1Gi"), of("1Gi")); got != "" {
		t.Errorf("no change: %q", got)
	}
}
