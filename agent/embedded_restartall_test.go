package agent

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// restartedTogether is a pod whose init container counts, and whose server has all restart.
func restartedTogether(node string) *corev1.Pod {
	grace, never := int64(1), corev1.ContainerRestartPolicyNever
	main := corev1.Container{Name: "c", Image: "setpoint.local/demo:v1", ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePath: "/dev/termination-log",
		VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}}
	first, other := main, main
	first.Name, first.Command = "first", []string{"/setpoint", "add", "/v"}
	other.Name, other.Command = "other", []string{"/setpoint", "wait"}
	main.RestartPolicy = &never
	main.RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers,
		ExitCodes: &corev1.ContainerRestartRuleOnExitCodes{Operator: corev1.ContainerRestartRuleOnExitCodesOpIn, Values: []int32{42}}}}
	main.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}}}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "uid-web"},
		Spec: corev1.PodSpec{NodeName: node, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
			Volumes:        []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
			InitContainers: []corev1.Container{first}, Containers: []corev1.Container{main, other}},
	}
}

// TestRestartAllInRealContainers: the pod keeps its sandbox, address and volumes, and runs from its init container on.
func TestRestartAllInRealContainers(t *testing.T) {
	m := newMachine(t)
	m.start()
	defer m.clean()
	if _, err := m.client.CoreV1().Pods("default").Create(t.Context(), restartedTogether(m.name), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := m.await("ready", func(p *corev1.Pod) bool { return p != nil && ready(p) })
	sandboxes, err := m.runtime.ListPodSandbox(t.Context(), nil)
	if err != nil || len(sandboxes) != 1 {
		t.Fatal(sandboxes, err)
	}
	if resp, err := http.Get("http://" + before.Status.PodIP + ":8080/exit?code=42"); err == nil {
		resp.Body.Close()
	}
	p := m.await("all restarted and ready", func(p *corev1.Pod) bool {
		all := slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
		return ready(p) && !slices.ContainsFunc(all, func(s corev1.ContainerStatus) bool { return s.RestartCount != 1 })
	})
	if again, err := m.runtime.ListPodSandbox(t.Context(), nil); err != nil || len(again) != 1 || again[0].Id != sandboxes[0].Id || p.Status.PodIP != before.Status.PodIP {
		t.Errorf("%v, %v, %s and then %s", again, err, before.Status.PodIP, p.Status.PodIP)
	}
	if end := p.Status.ContainerStatuses[0].LastTerminationState.Terminated; end == nil || end.ExitCode != 42 {
		t.Errorf("%+v", end)
	}
	if files := m.volumeFiles("v"); !slices.Equal(files, []string{"1", "2"}) {
		t.Errorf("the init container left %v", files)
	}
	m.delete("web")
	m.nothingMounted()
}

// addFile is a container that counts how often it ran by files of a volume.
func addFile(dir string) int {
	entries, err := os.ReadDir(dir)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, strconv.Itoa(len(entries)+1)), nil, 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// volumeFiles are the names in an emptyDir of the pod.
func (m *machine) volumeFiles(name string) []string {
	m.t.Helper()
	entries, err := os.ReadDir(filepath.Join(m.dir, "pods", "uid-web", "volumes", "kubernetes.io~empty-dir", name))
	if err != nil {
		m.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// untilKilled is a container that does nothing.
func untilKilled() int {
	_ = unix.Pause() // it returns only for a signal that is handled
	return 0
}
