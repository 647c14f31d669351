package agent

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/noswap"
)

// TestARealContainerHasNoSwap: it reads its own limit, which on cgroup v1 is that of memory and swap together.
func TestARealContainerHasNoSwap(t *testing.T) {
	file, want := "/sys/fs/cgroup/memory.swap.max", "0\n"
	switch noswap.OfThisMachine() {
	case noswap.None:
		t.Skip("this kernel does not count swap")
	case noswap.WithMemory:
		file, want = "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes", "67108864\n"
	}
	m := newMachine(t)
	m.start()
	defer m.clean()
	grace, limits := int64(1), corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-web"},
		Spec: corev1.PodSpec{NodeName: m.name, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
			Containers: []corev1.Container{{Name: "c", Image: "setpoint.local/demo:v1", ImagePullPolicy: corev1.PullIfNotPresent,
				TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
				Command:   []string{"/setpoint", "copy", file, "/dev/termination-log"},
				Resources: corev1.ResourceRequirements{Requests: limits, Limits: limits},
			}}},
	}
	if _, err := m.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p := m.await("ended", func(p *corev1.Pod) bool {
		return p != nil && (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed)
	})
	if len(p.Status.ContainerStatuses) != 1 || p.Status.ContainerStatuses[0].State.Terminated == nil {
		t.Fatalf("%s: %+v", p.Status.Message, p.Status.ContainerStatuses)
	}
	if got := p.Status.ContainerStatuses[0].State.Terminated.Message; !strings.HasPrefix(got, want) {
		t.Errorf("%s: %q, want %q", file, got, want)
	}
	m.delete("web")
	m.nothingMounted()
}
